//! The executor: workers behind a budget, and everything a caller does with them as a whole.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::Budget;
use crate::builder::Builder;
use crate::cost::Cost;
use crate::detect::Follow;
use crate::error::{BuildError, DetectError, DrainError, Refused, SubmitError};
use crate::handle::Handle;
use crate::lane::Lane;
use crate::map::Map;
use crate::options::LaneOptions;
use crate::plan::Plan;
use crate::scope::{self, Scope};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::submitting::Submitting;
use crate::sync::{AtomicBool, JoinHandle, Mutex, Ordering};
use crate::sys::clock::Moment;
use crate::waiter::Waiter;
use crate::waits::{self, Circle, Target};

/// A fixed set of workers behind a memory budget.
///
/// A job declares its bytes with a [`Cost`]; it waits in a bounded [`Lane`] and is admitted,
/// in order, when its bytes fit beside those of the jobs that run. See the
/// [crate documentation](crate) for the whole picture.
///
/// The executor itself is the handle on its default lane; [`lane`](Executor::lane) gives one
/// that can be cloned and sent elsewhere, and that refuses work once the executor is gone.
///
/// # Dropping
///
/// Dropping the executor [closes](Executor::close) it, ends the jobs that still wait
/// ([`JoinError::Closed`](crate::JoinError::Closed)), and blocks until the running jobs have
/// ended and their workers are gone. To have all accepted jobs run, call
/// [`drain`](Executor::drain) first. It does not block when a job of its own drops it, nor
/// after [`drain_timeout`](Executor::drain_timeout) has given up on the running jobs, nor in a job that
/// one of its jobs waits for: their workers then leave by themselves.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, MIB};
///
/// // 256 MiB in all, 64 of them never given out: three jobs of 64 MiB run at a time, however
/// // many workers there are.
/// let budget = Budget::new(256 * MIB, 64 * MIB)?;
/// let executor = Executor::builder().workers(8).budget(budget).build()?;
/// let handles: Vec<_> = (0..16_u64)
///     .map(|n| executor.submit(Cost::new(64 * MIB), move || n * n))
///     .collect::<Result<_, _>>()?;
/// let squares: Vec<u64> = handles.into_iter().map(|h| h.join()).collect::<Result<_, _>>()?;
/// assert_eq!(squares[15], 225);
/// assert!(executor.stats().ledger.peak_held_bytes <= 192 * MIB);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Executor {
    default_lane: Lane,
    plan: Plan,
    budget: Budget,
    follow: Option<Follow>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// A drain gave up on the running jobs: dropping does not wait for them either.
    gave_up: AtomicBool,
}

impl Executor {
    /// Starts to say what the executor is to be like.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        threads: Vec<JoinHandle<()>>,
        plan: Plan,
        budget: Budget,
    ) -> Self {
        Executor {
            default_lane: Lane::of(&shared, 0, false),
            plan,
            budget,
            follow: None,
            threads: Mutex::new(threads),
            gave_up: AtomicBool::new(false),
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        self.default_lane.shared()
    }

    /// Keeps the budget at the limit of the process for as long as there is the executor.
    pub(crate) fn follow(&mut self, every: Duration) -> Result<(), DetectError> {
        self.follow = Some(self.budget.follow(every)?);
        Ok(())
    }

    /// The budget that admits the jobs.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 16 * MIB)?;
    /// let executor = Executor::builder().workers(1).budget(budget).build()?;
    /// executor.budget().resize(96 * MIB, 16 * MIB);
    /// assert_eq!(executor.submit(Cost::new(80 * MIB), || 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How the executor came to its workers and its budget, when it was built. A limit that was
    /// found again since is in [`budget`](Executor::budget).
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The lane that takes what is submitted to the executor itself. Clone it to hand it to
    /// other threads.
    pub fn default_lane(&self) -> &Lane {
        &self.default_lane
    }

    /// The lane with this name, if there is one. The default lane is called `default`.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Executor, LaneOptions, MIB};
    ///
    /// let builder = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?);
    /// let executor = builder.lane(LaneOptions::new("logins")).build()?;
    /// assert!(executor.lane("logins").is_some());
    /// assert!(executor.lane("thumbnails").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lane(&self, name: &str) -> Option<Lane> {
        let crew = self.shared().crew;
        let found = self.shared().gate.change(|state| state.find_lane(crew, name));
        let (lane, is_held) = found?;
        Some(Lane::of(self.shared(), lane, is_held))
    }

    /// Adds a lane, which goes when the last clone of it is dropped and its last job has ended. It
    /// costs nothing while it has no jobs, so that each tenant, or each client, can have its own.
    /// As long as it is there, [`lane`](Executor::lane) finds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Closed`], [`BuildError::Forked`], [`BuildError::LaneTwice`] if there is one with its name, and others
    /// as when it is built with the executor. Jobs that can never be admitted beside what the lane
    /// is guaranteed are ended, as by [`Budget::resize`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, LaneOptions, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(2).budget(budget).build()?;
    /// let tenant = executor.add_lane(LaneOptions::new("tenant 7").capacity(10))?;
    /// assert_eq!(tenant.submit(Cost::new(MIB), || 7)?.join()?, 7);
    /// drop(tenant);
    /// assert!(executor.lane("tenant 7").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_lane(&self, options: LaneOptions) -> Result<Lane, BuildError> {
        if self.shared().was_forked() {
            return Err(BuildError::Forked);
        }
        let crew = self.shared().crew;
        let added = self.shared().gate.change(|state| {
            let plan = options.plan(state.crew(crew).waiting_limit_bytes())?;
            state.add_lane(crew, plan).map_err(|misfit| options.unfit(misfit))
        });
        Ok(Lane::of(self.shared(), added?, true))
    }

    /// Submits a job to the default lane: [`Lane::submit`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::submit`].
    ///
    /// # Blocking
    ///
    /// Blocks while the lane is full.
    pub fn submit<F, T>(&self, cost: Cost, work: F) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.default_lane.submit(cost, work)
    }

    /// Submits a job to the default lane if it has a place now: [`Lane::try_submit`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::try_submit`].
    pub fn try_submit<F, T>(&self, cost: Cost, work: F) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.default_lane.try_submit(cost, work)
    }

    /// Submits a job to the default lane, waiting at most `timeout`: [`Lane::submit_timeout`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::submit_timeout`].
    ///
    /// # Blocking
    ///
    /// Blocks for at most `timeout`.
    pub fn submit_timeout<F, T>(
        &self,
        cost: Cost,
        timeout: Duration,
        work: F,
    ) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.default_lane.submit_timeout(cost, timeout, work)
    }

    /// Submits a job to the default lane, in a future: [`Lane::submit_async`].
    pub fn submit_async<F, T>(&self, cost: Cost, work: F) -> Submitting<F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.default_lane.submit_async(cost, work)
    }

    /// Runs a function over an iterator on the default lane, results in order: [`Lane::map`].
    pub fn map<'a, I, C, F, T>(&self, items: I, cost: C, work: F) -> Map<'a, I::IntoIter, T>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        C: FnMut(&I::Item) -> Cost + 'a,
        F: Fn(I::Item) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        self.default_lane.map(items, cost, work)
    }

    /// Lets jobs borrow from the caller's stack: [`Lane::scope`].
    ///
    /// # Blocking
    ///
    /// Blocks until every job of the scope has ended.
    pub fn scope<'env, F, R>(&'env self, body: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        scope::enter(&self.default_lane, body)
    }

    /// Whether a job of this cost could ever be admitted: [`Lane::check`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::check`].
    pub fn check(&self, cost: Cost) -> Result<(), Refused> {
        self.default_lane.check(cost)
    }

    /// A consistent picture of the executor and its budget, as of one instant.
    ///
    /// Costs one short lock, and time in proportion to the number of lanes and, while a job waits, of
    /// jobs and permits in flight. What is resident is asked of the system, just after and
    /// without a lock: on Linux that is the reading of one small file.
    pub fn stats(&self) -> Stats {
        let crew = self.shared().crew;
        let mut stats = self.shared().gate.look(|state| Stats::of(state, crew, Moment::now()));
        stats.measure(|resident| match &self.shared().retention {
            Some(retention) => Some(retention.baseline_bytes(resident)),
            None => self.plan.memory.baseline_bytes,
        });
        stats
    }

    /// Accepts nothing from now on. Every submission, also one that waits, is refused with its
    /// closure and [`Refused::Closed`](crate::Refused::Closed). Accepted jobs still run.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB, Refused};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let accepted = executor.submit(Cost::new(MIB), || 7)?;
    /// executor.close();
    /// assert_eq!(executor.submit(Cost::new(MIB), || 8).unwrap_err().reason, Refused::Closed);
    /// assert_eq!(accepted.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        let crew = self.shared().crew;
        if !self.shared().was_forked() {
            self.shared().gate.change(|state| state.close(crew));
        }
    }

    /// Ends every accepted job that has not been admitted, and says how many there were. Their
    /// handles resolve to [`JoinError::Closed`](crate::JoinError::Closed).
    ///
    /// Submissions are still accepted, unless the executor is [closed](Executor::close).
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, JoinError, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).build()?;
    /// let permit = budget.acquire(64 * MIB)?; // so that nothing starts
    /// let handle = executor.submit(Cost::new(MIB), || ())?;
    /// assert_eq!(executor.abort_waiting(), 1);
    /// assert!(matches!(handle.join(), Err(JoinError::Closed)));
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort_waiting(&self) -> usize {
        let crew = self.shared().crew;
        if self.shared().was_forked() {
            return 0;
        }
        self.shared().gate.change(|state| state.abort_waiting(crew))
    }

    /// Closes, and waits until every accepted job has ended and its handle is resolved.
    ///
    /// # Errors
    ///
    /// [`DrainError::OwnWorker`] from one of the executor's own workers, which would wait for
    /// itself, and [`DrainError::Circle`] from a job that one of its jobs waits for. The executor is
    /// closed all the same.
    ///
    /// # Blocking
    ///
    /// Blocks until the last job has ended: for ever, if one never ends, or waits for bytes
    /// that a [`Permit`](crate::Permit) of the caller holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let handles: Vec<_> =
    ///     (0..10).map(|n| executor.submit(Cost::new(MIB), move || n)).collect::<Result<_, _>>()?;
    /// executor.drain()?;
    /// assert!(handles.iter().all(|handle| handle.is_finished()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self) -> Result<(), DrainError> {
        self.drain_until(None)
    }

    /// Closes, and waits at most `timeout` for the accepted jobs to end.
    ///
    /// # Errors
    ///
    /// [`DrainError::Unfinished`] says what still runs and waits when the time is over. What
    /// waits can then be ended with [`abort_waiting`](Executor::abort_waiting); dropping the
    /// executor will do that, and not wait for what runs.
    ///
    /// # Blocking
    ///
    /// Blocks for at most `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    /// use admit::{Budget, Cost, DrainError, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let (release, wait) = channel::<()>();
    /// executor.submit(Cost::new(MIB), move || wait.recv().is_ok())?;
    /// let unfinished = executor.drain_timeout(Duration::from_millis(1)).unwrap_err();
    /// assert!(matches!(unfinished, DrainError::Unfinished { running_jobs: 1, .. }
    ///     | DrainError::Unfinished { waiting_jobs: 1, .. }));
    /// drop(executor); // does not wait for the job
    /// drop(release);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain_timeout(&self, timeout: Duration) -> Result<(), DrainError> {
        let drained = self.drain_until(Instant::now().checked_add(timeout));
        if matches!(drained, Err(DrainError::Unfinished { .. })) {
            self.gave_up.store(true, Ordering::Relaxed);
        }
        drained
    }

    fn drain_until(&self, deadline: Option<Instant>) -> Result<(), DrainError> {
        let shared = self.shared();
        let crew = shared.crew;
        if shared.was_forked() {
            return Err(DrainError::Forked);
        }
        self.close();
        if deadline.is_none() && shared.id().is_on_callers_budget() || shared.is_own_worker() {
            return Err(DrainError::OwnWorker);
        }
        let target = Target::Executor(shared.id().place);
        let _waiting = waits::begin_until(deadline, target).map_err(|Circle| DrainError::Circle)?;
        let waiter = Arc::new(Waiter::new());
        let told = Arc::clone(&waiter);
        let Some(seq) = shared.gate.change(|state| state.wait_for_end(crew, told)) else {
            return Ok(());
        };
        if shared.gate.wait(&waiter, deadline).is_some() {
            return Ok(());
        }
        shared.gate.change(|state| {
            state.stop_waiting_for_end(crew, seq);
            let crew = state.crew(crew);
            if crew.bench().workers() == 0 {
                return Ok(());
            }
            Err(DrainError::Unfinished {
                running_jobs: crew
                    .lanes()
                    .map(|(_, lane)| state.accounts().get(lane.account).running_jobs)
                    .sum(),
                waiting_jobs: crew.waiting_jobs(),
            })
        })
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        if self.shared().was_forked() {
            // The threads are the parent's.
            std::mem::forget(threads);
            return;
        }
        self.close();
        self.abort_waiting();
        if self.shared().is_own_worker() || self.gave_up.load(Ordering::Relaxed) {
            return;
        }
        let Ok(_waiting) = waits::begin(Target::Executor(self.shared().id().place)) else {
            // The jobs that run wait for this one. Their workers leave by themselves.
            return;
        };
        for thread in threads {
            // A worker outlives every panic of a job, so there is nothing to learn here.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("default_lane", &self.default_lane).finish_non_exhaustive()
    }
}
