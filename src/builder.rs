//! What the caller asks for, and how an executor is made from it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::budget::Budget;
use crate::crew::Crew;
use crate::error::BuildError;
use crate::executor::Executor;
use crate::shared::Shared;
use crate::sync;
use crate::worker;

const DEFAULT_LANE: &str = "default";
const DEFAULT_CAPACITY: usize = 1024;
/// Each thread takes two memory mappings, and Linux allows a process 65,530.
const MOST_WORKERS: usize = 16_384;

/// What a lane is to be like: its name and its limits.
///
/// # Examples
///
/// ```
/// use admit::{LaneOptions, MIB};
///
/// let lane = LaneOptions::new("logins").capacity(64).input_bytes(MIB);
/// assert_eq!(lane.name(), "logins");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LaneOptions {
    name: String,
    capacity: usize,
    input_bytes: Option<u64>,
}

impl LaneOptions {
    /// A lane for at most 1024 waiting jobs, with as many bytes of input as the executor
    /// allows in all.
    pub fn new(name: impl Into<String>) -> Self {
        LaneOptions { name: name.into(), capacity: DEFAULT_CAPACITY, input_bytes: None }
    }

    /// The lane's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many jobs may wait in the lane. 0: none, each is handed to a worker directly.
    pub fn capacity(mut self, jobs: usize) -> Self {
        self.capacity = jobs;
        self
    }

    /// How many bytes of input the waiting jobs may hold together.
    pub fn input_bytes(mut self, bytes: u64) -> Self {
        self.input_bytes = Some(bytes);
        self
    }
}

/// What an executor is to be like. [`Executor::builder`] makes one.
///
/// Nothing is checked before [`build`](Builder::build).
///
/// # Examples
///
/// ```
/// use admit::{BuildError, Budget, Executor, MIB};
///
/// let builder = Executor::builder().workers(2).waiting_bytes(65 * MIB);
/// let error = builder.budget(Budget::new(64 * MIB, 0)?).build().unwrap_err();
/// assert!(matches!(error, BuildError::WaitingAboveBudget { .. }));
/// assert_eq!(
///     error.to_string(),
///     "limit of 65 MiB for waiting input is larger than the 64 MiB that the budget has left",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    workers: usize,
    budget: Option<Budget>,
    waiting_bytes: u64,
    default_lane: LaneOptions,
    lanes: Vec<LaneOptions>,
    thread_name: String,
    stack_bytes: Option<usize>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            workers: 0,
            budget: None,
            waiting_bytes: 0,
            default_lane: LaneOptions::new(DEFAULT_LANE),
            lanes: Vec::new(),
            thread_name: String::from("admit"),
            stack_bytes: None,
        }
    }

    /// How many workers run jobs, at most 16,384. All are started by [`build`](Builder::build)
    /// and stay.
    ///
    /// Workers are for processors and the budget is for memory: more workers than processors
    /// are of little use, and how many jobs fit into memory is not their business.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// The budget that admits the jobs. A clone of one that other executors use is shared with
    /// them.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// How many bytes of input may wait in all lanes together. They are set aside from the
    /// budget, so that `capacity = reserve + waiting + admissible`. A job that runs is charged
    /// for its input as part of the admissible bytes.
    ///
    /// The default is 0: jobs that declare input are then not queued, and their submitters
    /// wait until a worker takes them.
    ///
    /// A submission that is blocked still holds its input, which is in no account here: it is
    /// its caller's. With many submitting threads leave room for that in the reserve, and see
    /// [`LaneStats::blocked_input_bytes`](crate::LaneStats::blocked_input_bytes).
    pub fn waiting_bytes(mut self, bytes: u64) -> Self {
        self.waiting_bytes = bytes;
        self
    }

    /// How many jobs may wait in the default lane; 1024 unless set. 0: none, each is handed to
    /// a worker directly.
    pub fn capacity(mut self, jobs: usize) -> Self {
        self.default_lane.capacity = jobs;
        self
    }

    /// How many bytes of input the jobs that wait in the default lane may hold together. As
    /// many as the executor allows in all, unless set.
    pub fn input_bytes(mut self, bytes: u64) -> Self {
        self.default_lane.input_bytes = Some(bytes);
        self
    }

    /// Adds a lane beside the default one.
    pub fn lane(mut self, lane: LaneOptions) -> Self {
        self.lanes.push(lane);
        self
    }

    /// The beginning of the worker threads' names; `admit` unless set. A dash and the worker's
    /// number follow.
    pub fn thread_name(mut self, prefix: impl Into<String>) -> Self {
        self.thread_name = prefix.into();
        self
    }

    /// The size of each worker's stack, in bytes. Unless set, what [`std::thread`] uses.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Makes the executor and starts its workers.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the numbers do not add up or a thread cannot be started. Then nothing
    /// is left running, and the budget is as it was.
    pub fn build(self) -> Result<Executor, BuildError> {
        let budget = self.budget.as_ref().ok_or(BuildError::NoBudget)?;
        if self.workers == 0 {
            return Err(BuildError::NoWorkers);
        }
        if self.workers > MOST_WORKERS {
            return Err(BuildError::TooManyWorkers { asked: self.workers, most: MOST_WORKERS });
        }
        if self.thread_name.contains('\0') {
            return Err(BuildError::ThreadName);
        }
        if self.stack_bytes.is_some_and(|bytes| bytes > isize::MAX as usize / 2) {
            return Err(BuildError::Workers {
                started: 0,
                asked: self.workers,
                source: std::io::ErrorKind::OutOfMemory.into(),
            });
        }
        let crew = Crew::new(self.waiting_bytes, self.plan_lanes()?);
        let gate = Arc::clone(budget.gate());
        let crew = gate.change(|state| state.attach(crew)).map_err(|available_bytes| {
            BuildError::WaitingAboveBudget {
                waiting_limit_bytes: self.waiting_bytes,
                available_bytes,
            }
        })?;
        self.start(Shared::new(gate, crew))
    }

    fn plan_lanes(&self) -> Result<Vec<(Arc<str>, usize, u64)>, BuildError> {
        let mut names = HashSet::new();
        let mut plan = Vec::new();
        for lane in std::iter::once(&self.default_lane).chain(&self.lanes) {
            if !names.insert(lane.name.as_str()) {
                return Err(BuildError::LaneTwice { lane: lane.name.clone() });
            }
            let bytes = lane.input_bytes.unwrap_or(self.waiting_bytes);
            if bytes > self.waiting_bytes {
                return Err(BuildError::LaneAboveWaiting {
                    lane: lane.name.clone(),
                    lane_bytes: bytes,
                    waiting_limit_bytes: self.waiting_bytes,
                });
            }
            plan.push((Arc::from(lane.name.as_str()), lane.capacity, bytes));
        }
        Ok(plan)
    }

    fn start(self, shared: Arc<Shared>) -> Result<Executor, BuildError> {
        let crew = shared.crew;
        let mut threads = Vec::new();
        for number in 0..self.workers {
            // Counted before it runs, so that an executor that was built has all its workers.
            shared.gate.change(|state| state.start_worker(crew));
            let name = format!("{}-{number}", self.thread_name);
            let its_own = Arc::clone(&shared);
            match sync::spawn(name, self.stack_bytes, move || worker::run(its_own)) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    shared.gate.change(|state| {
                        state.close(crew);
                        // On behalf of the worker that was counted and never came.
                        state.may_leave(crew);
                    });
                    let started = threads.len();
                    for thread in threads {
                        drop(thread.join());
                    }
                    return Err(BuildError::Workers { started, asked: self.workers, source });
                }
            }
        }
        shared.gate.change(|state| state.stay());
        Ok(Executor::new(shared, threads))
    }
}
