//! What the submitter keeps of a job.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use crate::answer::{JobId, Ticket};
use crate::error::JoinError;
use crate::job::Outcome;
use crate::lookout;
use crate::running::{self, ExecutorId};
use crate::sync::{self, SPIN_ROUNDS};
use crate::waiter::Waiter;
use crate::waits::{self, Circle, Target};
use crate::within::{self, Joined};

/// A submitted job: wait for its value, look after it, or cancel it.
///
/// Dropping the handle detaches the job: it runs all the same, and its value is dropped on the
/// worker. The job's bytes do not depend on the handle: they are released when the job ends,
/// before the handle learns of it, and not earlier. Its value counts
/// only as far as the job [kept](crate::Context::keep) bytes for it.
///
/// # As a future
///
/// A handle is a future of the same outcome as [`join`](ScopedHandle::join), and needs no particular
/// runtime. After it has given its outcome, whatever asks for that again panics. It is cancel-safe: dropped while it waits, it detaches the job, or
/// [cancels](ScopedHandle::cancel_on_drop) it, as any handle does. While nobody polls it, it holds up
/// nobody. In a job, polling it is joining it: it blocks.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, JoinError, MIB};
///
/// let executor = Executor::builder().workers(2).budget(Budget::new(64 * MIB, 0)?).build()?;
/// let sum = executor.submit(Cost::new(MIB), || (1..=10).sum::<u32>())?;
/// assert_eq!(sum.join()?, 55);
///
/// let bad = executor.submit(Cost::new(MIB), || -> u32 { panic!("no such page") })?;
/// match bad.join() {
///     Err(JoinError::Panicked(panic)) => assert_eq!(panic.message().unwrap(), "no such page"),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Handle<T> = ScopedHandle<'static, T>;

/// A [`Handle`] whose job may borrow for `'scope`, which for a plain handle is `'static`.
#[must_use = "dropping a handle detaches its job; use `drop` to say so"]
pub struct ScopedHandle<'scope, T> {
    /// `None` once the outcome is taken.
    job: Option<Arc<dyn Outcome<T> + 'scope>>,
    executor: ExecutorId,
    ticket: Ticket,
    cancels_on_drop: bool,
    /// Whom the job tells, once this was polled.
    task: Option<Arc<Waiter>>,
}

impl<'scope, T> ScopedHandle<'scope, T> {
    pub(crate) fn new(
        job: Arc<dyn Outcome<T> + 'scope>,
        executor: ExecutorId,
        ticket: Ticket,
    ) -> Self {
        ScopedHandle { job: Some(job), executor, ticket, cancels_on_drop: false, task: None }
    }

    /// The same handle, which [cancels](ScopedHandle::cancel) its job when it is dropped: for work that
    /// is of no use once its caller has gone. A job that runs by then keeps its bytes to its end, and
    /// sees in its [`Context`](crate::Context) that nobody wants its value any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).build()?;
    /// let permit = budget.acquire(64 * MIB)?; // so that nothing starts
    /// drop(executor.submit(Cost::new(MIB), || unreachable!())?.cancel_on_drop());
    /// assert_eq!(executor.stats().counts.cancelled, 1);
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels_on_drop = true;
        self
    }

    /// Waits for the job to end.
    ///
    /// # Errors
    ///
    /// [`JoinError`] says why there is no value: the job panicked, was cancelled, or never
    /// started. To a job that would wait for another one: [`JoinError::AboveOwn`],
    /// [`JoinError::Circle`]. The other one goes on then, detached, or is
    /// [cancelled](ScopedHandle::cancel_on_drop).
    ///
    /// # Blocking
    ///
    /// Blocks until the job has ended. One that waits for bytes which the calling thread
    /// [acquired](crate::Budget::acquire) never starts: drop the permit first. One that waits for
    /// bytes of results that the thread has not dropped is ended after
    /// [a while](crate::Budget::set_stall_timeout).
    ///
    /// **In a job**, a job that has not started is not waited for: it is taken out of its lane and
    /// run right here, within the bytes that the calling job holds, of whichever executor it is. So
    /// jobs may submit to their own executor and wait, with any number of workers, if a job declares
    /// no less than the jobs it waits for. A worker never runs a job that it does not wait for.
    pub fn join(mut self) -> Result<T, JoinError> {
        self.join_in_place()
    }

    fn join_in_place(&mut self) -> Result<T, JoinError> {
        if !self.is_finished() {
            if self.executor.was_forked() {
                return Err(JoinError::Forked);
            }
            self.wait_in_job()?;
        }
        self.take().expect("it has finished")
    }

    /// Waits at most `timeout` for the job to end, and otherwise gives the handle back.
    ///
    /// # Errors
    ///
    /// The outer error is the handle, of a job that has not ended in time. The inner one is as
    /// for [`join`](ScopedHandle::join), except that the executor's own workers may wait too.
    ///
    /// # Blocking
    ///
    /// Blocks for at most `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let (release, wait) = channel();
    /// let handle = executor.submit(Cost::new(MIB), move || wait.recv())?;
    /// let handle = handle.join_timeout(Duration::from_millis(1)).expect_err("it waits");
    /// release.send(7)?;
    /// assert_eq!(handle.join()?, Ok(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_timeout(mut self, timeout: Duration) -> Result<Result<T, JoinError>, Self> {
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            return Ok(self.join());
        };
        self.wait(Some(deadline));
        self.take().ok_or(self)
    }

    /// Takes the outcome if the job has ended, and otherwise gives the handle back.
    ///
    /// # Errors
    ///
    /// As for [`join_timeout`](ScopedHandle::join_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let mut handle = executor.submit(Cost::new(MIB), || 7)?;
    /// let value = loop {
    ///     match handle.try_join() {
    ///         Ok(outcome) => break outcome?,
    ///         Err(unfinished) => handle = unfinished,
    ///     }
    ///     std::thread::yield_now();
    /// };
    /// assert_eq!(value, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_join(mut self) -> Result<Result<T, JoinError>, Self> {
        self.take().ok_or(self)
    }

    /// Whether the job has ended, so that joining will not block.
    pub fn is_finished(&self) -> bool {
        self.job.as_ref().is_none_or(|job| job.is_finished())
    }

    /// Asks the job to stop.
    ///
    /// A job that no worker has taken yet never starts: its closure is dropped, its bytes are
    /// released and its handle resolves to [`JoinError::Cancelled`], all before this returns
    /// `true`.
    ///
    /// `false` means that it was not ended here: it has ended, or a worker has it. A job that
    /// runs sees the wish in its [`Context`](crate::Context) and ends when it likes, with a
    /// value. One that its worker has not started yet still resolves to `Cancelled`.
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
    /// assert!(handle.cancel());
    /// assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self) -> bool {
        if self.is_finished() || self.executor.was_forked() {
            return false;
        }
        self.job().ask_to_cancel();
        let ticket = self.ticket;
        // Without the executor there is no queue that the job could wait in.
        let shared = self.executor.find();
        shared.is_some_and(|shared| shared.gate.change(|state| state.cancel(ticket)))
    }

    fn job(&self) -> &Arc<dyn Outcome<T> + 'scope> {
        self.job.as_ref().expect("its outcome was taken by a poll before")
    }

    /// Waits, or runs the job within the one that this thread runs.
    fn wait_in_job(&mut self) -> Result<(), JoinError> {
        let Some(running) = running::current() else {
            if self.executor.is_on_callers_budget() {
                return Err(JoinError::OwnWorker);
            }
            self.wait(None);
            return Ok(());
        };
        let id = JobId { gate: self.executor.place.gate, seq: self.ticket.seq };
        let target = match within::run(&running, self.executor, self.ticket) {
            Joined::Ran => return Ok(()),
            Joined::Elsewhere => Target::Job(id),
            Joined::Above { needed_bytes, held_bytes } if self.executor.is_on_callers_budget() => {
                return Err(JoinError::AboveOwn { needed_bytes, held_bytes });
            }
            Joined::Above { .. } => Target::Budget(id.gate),
        };
        let _waiting = waits::begin(target).map_err(|Circle| JoinError::Circle)?;
        self.wait(None);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) {
        self.stop_telling_task();
        let job = self.job();
        for round in 0..SPIN_ROUNDS {
            if job.is_finished() {
                return;
            }
            sync::spin(round);
        }
        let waiter = Arc::new(Waiter::new());
        if !job.tell_when_finished(Arc::clone(&waiter)) {
            return;
        }
        // An executor that is gone has no job that waits, and ends none.
        let told = match self.executor.find() {
            Some(shared) => shared.gate.wait(&waiter, deadline),
            None => waiter.sleep(deadline),
        };
        if told.is_none() {
            job.tell_nobody();
        }
    }

    fn stop_telling_task(&mut self) {
        // In a child process nobody tells, and the job's lock may be held for ever.
        if self.task.take().is_some() && !self.executor.was_forked() {
            self.job().tell_nobody();
        }
    }

    fn take(&mut self) -> Option<Result<T, JoinError>> {
        let outcome = self.job().take()?;
        self.job = None;
        Some(outcome)
    }
}

impl<T> Future for ScopedHandle<'_, T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    ///
    /// After it has given its output.
    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.take() {
            return Poll::Ready(outcome);
        }
        if self.executor.was_forked() || running::employer().is_some() {
            return Poll::Ready(self.join_in_place());
        }
        let first = self.task.is_none();
        let task = self.task.clone().unwrap_or_else(|| Arc::new(Waiter::of_task()));
        // The waker before the job learns of it.
        let is_told = task.poll(context).is_ready()
            || first && !self.job().tell_when_finished(Arc::clone(&task));
        // Not before: with a waker whose clone panics this poll has not been.
        self.task = Some(task);
        if is_told {
            return Poll::Ready(self.take().expect("it has finished"));
        }
        if first && let Some(shared) = self.executor.find() {
            lookout::watch(&shared.gate);
        }
        Poll::Pending
    }
}

impl<T> Drop for ScopedHandle<'_, T> {
    fn drop(&mut self) {
        if self.job.is_none() {
            return;
        }
        if self.cancels_on_drop {
            self.cancel();
        }
        self.stop_telling_task();
        if let Some(job) = self.job.take() {
            job.abandon();
        }
    }
}

impl<T> fmt::Debug for ScopedHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}
