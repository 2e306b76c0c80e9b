//! Submitting: a lane as the caller sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::LaneId;
use crate::cost::Cost;
use crate::error::Refused;
use crate::map::Map;
use crate::scope::{self, Scope};
use crate::shared::Shared;
use crate::sys::clock::Moment;

mod enter;
mod submit;
pub(crate) use enter::{Entered, Patience, as_refused};

/// One bounded submission queue of an executor.
///
/// A lane holds waiting jobs up to two limits, whichever is met first: their number, and the
/// sum of their input bytes. A submission beyond that waits with its closure, in order. Jobs
/// are admitted first in, first out; while the one at the head does not fit, none passes it,
/// unless the budget [allows it](crate::Budget::set_overtaking).
///
/// A lane of capacity 0 holds nothing: a submission waits until a worker takes the job. The
/// same is done in any lane with a job whose input is larger than the lane's limit of input
/// bytes: it is never queued, and handed to a worker straight from its submitter.
///
/// Between the lanes of an executor, and between executors on one budget, the head of the lane
/// that has had least in proportion to its [share](crate::LaneOptions::share) goes first. While it
/// does not fit it holds up the others, except that a lane can always have what it was
/// [guaranteed](crate::LaneOptions::guaranteed_bytes).
///
/// Lanes are cheap to clone. One that outlives its executor refuses everything as closed.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, LaneOptions, MIB};
///
/// let executor = Executor::builder()
///     .workers(2)
///     .budget(Budget::new(256 * MIB, 64 * MIB)?)
///     .waiting_bytes(16 * MIB)
///     .lane(LaneOptions::new("thumbnails").capacity(100).input_bytes(8 * MIB))
///     .build()?;
/// let thumbnails = executor.lane("thumbnails").expect("it was built");
/// let picture = vec![0_u8; 4096];
/// let cost = Cost::new(32 * MIB).input(picture.len() as u64);
/// assert_eq!(thumbnails.submit(cost, move || picture.len())?.join()?, 4096);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Lane {
    shared: Arc<Shared>,
    lane: usize,
    name: Arc<str>,
    start_within: Option<Duration>,
    /// Of a lane that goes when nobody holds it.
    _hold: Option<Arc<Hold>>,
}

/// Keeps a lane that was added to an executor.
struct Hold {
    shared: Arc<Shared>,
    at: LaneId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.shared.was_forked() {
            self.shared.gate.change(|state| state.let_lane_go(self.at));
        }
    }
}

impl Lane {
    /// `is_held`: the lane counts its holders, and the caller is one of them.
    pub(crate) fn of(shared: &Arc<Shared>, lane: usize, is_held: bool) -> Self {
        let at = LaneId { crew: shared.crew, lane };
        let hold = is_held.then(|| Arc::new(Hold { shared: Arc::clone(shared), at }));
        let name = shared.gate.look(|state| Arc::clone(&state.crew(at.crew).lane(lane).name));
        Lane { shared: Arc::clone(shared), lane, name, start_within: None, _hold: hold }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn id(&self) -> LaneId {
        LaneId { crew: self.shared.crew, lane: self.lane }
    }

    /// The lane's name.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// assert_eq!(&*executor.default_lane().name(), "default");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn its_name(&self) -> &str {
        &self.name
    }

    /// The same lane, for jobs that are of no use unless they start in time.
    ///
    /// A job that is submitted through it and has not started when `time` is over, counted from the
    /// call of `submit`, never starts. Its closure is dropped, its place is free for others, and its
    /// handle says [`JoinError::Expired`](crate::JoinError::Expired); while its submitter still waits
    /// for a place, [`Refused::Expired`] returns the closure. This happens before any other job is
    /// considered, at the next event on the budget; where there is none, threads that wait notice
    /// within a quarter of a second. Known to within a tick of the system's timer.
    ///
    /// For clients that give up after a while, take off the time that the job needs to run: one that
    /// starts just before its client leaves is wasted.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use admit::{Budget, Cost, Executor, JoinError, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).build()?;
    /// let in_time = executor.default_lane().start_within(Duration::from_millis(20));
    /// let permit = budget.acquire(64 * MIB)?; // so that nothing starts
    /// let late = in_time.submit(Cost::new(MIB), || ())?;
    /// assert!(matches!(late.join(), Err(JoinError::Expired)));
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_within(&self, time: Duration) -> Lane {
        Lane { start_within: Some(time), ..self.clone() }
    }

    /// Whether a job of this cost could ever be admitted, as the budget is now. To be asked
    /// before an input is loaded that would be refused anyway.
    ///
    /// # Errors
    ///
    /// [`Refused::NeverFits`], with both numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// assert!(executor.default_lane().check(Cost::new(64 * MIB)).is_ok());
    /// assert_eq!(
    ///     executor.check(Cost::new(64 * MIB).input(MIB)).unwrap_err().to_string(),
    ///     "job never fits: it needs 65 MiB (64 MiB working, 1 MiB input), \
    ///      and at most 64 MiB are admissible in its lane",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, cost: Cost) -> Result<(), Refused> {
        let id = self.id();
        let admissible_bytes = self.shared.gate.look(|state| state.largest_bytes_of(id));
        match cost.total_bytes() {
            Some(bytes) if bytes <= admissible_bytes => Ok(()),
            _ => Err(Refused::NeverFits { cost, admissible_bytes }),
        }
    }

    /// How long a job that is submitted now would wait, as far as can be told: for those whom there is
    /// no place for, to be told when to come again.
    ///
    /// It is the number of those who wait, over the pace at which jobs have left the lane in the last
    /// second or two. That is known from when it is asked for the second time within ten seconds; until
    /// then, and while none leave, it is as long as the oldest has waited. Zero where nobody waits and a
    /// worker is free. An estimate: what comes next may be larger.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use admit::{Budget, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// assert_eq!(executor.default_lane().predicted_wait(), Duration::ZERO);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predicted_wait(&self) -> Duration {
        let id = self.id();
        self.shared.gate.change(|state| state.predicted_wait(id))
    }

    /// Runs a function over an iterator and gives its results in the order of the items.
    ///
    /// The iterator is read only as far ahead as the lane and the budget allow: see [`Map`].
    /// Items that borrow need a scope: [`Scope::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(4).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let lengths: Vec<usize> = executor
    ///     .map(["a", "bb", "ccc"], |_| Cost::new(16 * MIB), |text| text.len())
    ///     .collect::<Result<_, _>>()?;
    /// assert_eq!(lengths, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map<'a, I, C, F, T>(&self, items: I, cost: C, work: F) -> Map<'a, I::IntoIter, T>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        C: FnMut(&I::Item) -> Cost + 'a,
        F: Fn(I::Item) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        let work = Arc::new(work);
        let make_work = move |item| {
            let work = Arc::clone(&work);
            move || work(item)
        };
        let lane = self.clone();
        let submit = move |patience, cost, work| lane.submit_with(patience, cost, work);
        Map::new(self.clone(), items.into_iter(), cost, make_work, submit)
    }

    /// Runs jobs that borrow from the caller's stack, and waits for all of them.
    ///
    /// # Panics
    ///
    /// If `body` panics, after every job has ended.
    ///
    /// # Blocking
    ///
    /// Blocks until every job of the scope has ended. A job that waits for bytes which the
    /// calling thread itself holds in a [`Permit`](crate::Permit) never starts: drop the permit
    /// first. A worker of the executor, or of another one on the same budget, cannot submit to a
    /// scope, since it could wait for ever: its submissions are refused with
    /// [`Refused::OwnWorker`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(2).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let mut halves = [vec![3, 1, 2], vec![6, 5, 4]];
    /// executor.scope(|scope| {
    ///     for half in &mut halves {
    ///         drop(scope.submit(Cost::new(MIB), || half.sort()));
    ///     }
    /// });
    /// assert_eq!(halves, [[1, 2, 3], [4, 5, 6]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, F, R>(&'env self, body: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        scope::enter(self, body)
    }

    /// How long the lane's jobs waited, by how they ended: as of this instant.
    ///
    /// Needs the feature `hdrhistogram`, with which every job that ends is recorded; without it
    /// [`Counts::waited`](crate::Counts::waited) has their sum.
    #[cfg(feature = "hdrhistogram")]
    pub fn wait_times(&self) -> crate::Times {
        let id = self.id();
        self.shared.gate.look(|state| state.crew(id.crew).lane(id.lane).wait_times.clone())
    }

    /// How long the lane's jobs ran, by how they ended: as of this instant. Needs the feature
    /// `hdrhistogram`, with which every job is timed.
    #[cfg(feature = "hdrhistogram")]
    pub fn run_times(&self) -> crate::Times {
        let id = self.id();
        self.shared.gate.look(|state| state.crew(id.crew).lane(id.lane).run_times.clone())
    }

    /// How many jobs, and how many of their bytes, the lane and the budget have room for.
    pub(crate) fn reach(&self) -> (usize, u64) {
        let id = self.id();
        self.shared.gate.look(|state| {
            let lane = state.crew(id.crew).lane(id.lane);
            let workers = state.crew(id.crew).bench().workers();
            let admissible_bytes = state.ledger().admissible_bytes();
            (
                lane.limit_jobs.saturating_add(workers),
                lane.limit_input_bytes.saturating_add(admissible_bytes),
            )
        })
    }

    pub(crate) fn refuse_own_worker(&self) {
        let id = self.id();
        self.shared.gate.change(|state| state.refuse_own_worker(id));
    }

    /// When a job that is submitted now has to have started.
    pub(crate) fn times(&self) -> (Moment, Moment) {
        let since = Moment::now();
        (since, self.start_within.map_or(Moment::NEVER, |time| since.after(time)))
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("name", &self.name()).finish_non_exhaustive()
    }
}
