//! What the caller asks for, and how an executor is made from it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::allocator;
use crate::bench::Rank;
use crate::budget::Budget;
use crate::crew::Crew;
use crate::error::BuildError;
use crate::executor::Executor;
use crate::options::LaneOptions;
use crate::plan::{Plan, WorkersPlan};
use crate::policy::CpuPolicy;
use crate::queue::LanePlan;
use crate::shared::Shared;
use crate::sync::{self, JoinHandle};
use crate::worker;

const DEFAULT_LANE: &str = "default";
/// As many as the smallest pools that people use: what is beyond is for machines with idle
/// processors.
const NORMAL_WORKERS: usize = 4;
/// Each thread takes two memory mappings, and Linux allows a process 65,530.
const MOST_WORKERS: usize = 16_384;

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
    workers: Option<usize>,
    cpu_policy: CpuPolicy,
    nice_beyond: Option<usize>,
    bounds_allocator: bool,
    budget: Option<Budget>,
    redetect_every: Option<Duration>,
    waiting_bytes: u64,
    default_lane: LaneOptions,
    lanes: Vec<LaneOptions>,
    thread_name: String,
    stack_bytes: Option<usize>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            workers: None,
            cpu_policy: CpuPolicy::automatic(),
            nice_beyond: Some(NORMAL_WORKERS),
            bounds_allocator: true,
            budget: None,
            redetect_every: None,
            waiting_bytes: 0,
            default_lane: LaneOptions::new(DEFAULT_LANE),
            lanes: Vec::new(),
            thread_name: String::from("admit"),
            stack_bytes: None,
        }
    }

    /// How many workers run jobs, at most 16,384. All are started by [`build`](Builder::build)
    /// and stay. It wins over any [policy](Builder::cpu_policy), and over the environment.
    ///
    /// Workers are for processors and the budget is for memory: more workers than processors
    /// are of little use, and how many jobs fit into memory is not their business.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = Some(count);
        self
    }

    /// The rule for the number of workers; [`CpuPolicy::automatic`] unless set. Unless the number
    /// is given, an executor makes do with the threads that could be started, if one could, and
    /// its [plan](Executor::plan) says so.
    pub fn cpu_policy(mut self, policy: CpuPolicy) -> Self {
        self.cpu_policy = policy;
        self
    }

    /// How many workers run at the program's own priority; 4 unless set. On Linux those beyond
    /// run at nice 10, if the system lets them. `None`: all run at the program's priority.
    ///
    /// Nice values order the threads of one control group (or session, with autogrouping): the
    /// other threads of the program, such as those that answer requests, get the processor before
    /// the workers beyond the first ones do. Between control groups they do nothing; there weight
    /// and quota decide. A worker at nice 10 cannot go back, and threads and processes that its
    /// jobs start have its nice value. Workers of normal priority are given jobs first, but for those
    /// that are [guaranteed](crate::LaneOptions::guaranteed_workers) to a lane, which are left to it.
    pub fn nice_beyond(mut self, workers: impl Into<Option<usize>>) -> Self {
        self.nice_beyond = workers.into();
        self
    }

    /// Whether to keep glibc's allocator from holding on to what jobs have freed; `true` unless
    /// set.
    ///
    /// As it comes, glibc soon keeps freed blocks of up to 32 MiB for each thread, and a process
    /// whose jobs stay within the budget is killed all the same. This is done about it:
    ///
    /// - Large blocks are mappings of their own and go back to the system when they are freed
    ///   (`M_MMAP_THRESHOLD`, and `M_TRIM_THRESHOLD` at twice that). The price is a system call
    ///   and fresh pages for each; smaller blocks are used again. A block is large from an eighth
    ///   of the reserve divided by the workers on, but never below 128 KiB, and always from 8 MiB
    ///   on: so that what the arenas of all workers keep is at most a quarter of the reserve. The
    ///   setting is the whole process's, and stays; the executor that asks for least decides.
    /// - When a job of 1 MiB or more has ended and what is
    ///   [retained](crate::Stats::retained_bytes) has grown by a quarter of the reserve, its worker
    ///   has all free pages returned (`malloc_trim`), before the job's bytes are released. The same
    ///   when the largest jobs that the workers have ended since the last time could have left more
    ///   than half of the reserve.
    ///
    /// - Where mappings are limited (`RLIMIT_AS`), threads share as many arenas as a quarter of the
    ///   reserve has room for (`M_ARENA_MAX`): each is 64 MiB of mappings.
    ///
    /// The more workers there are for a reserve, the more often memory is returned, and the more
    /// it costs to fill it anew: `DESIGN.md` has the measurements.
    ///
    /// Nothing is done where the environment has settings for the allocator (`MALLOC_ARENA_MAX`
    /// and its like), or where allocations do not come from glibc: under jemalloc, mimalloc or
    /// musl. The [plan](Executor::plan) says which of these it is.
    pub fn bound_allocator(mut self, yes: bool) -> Self {
        self.bounds_allocator = yes;
        self
    }

    /// The budget that admits the jobs. A clone of one that other executors use is shared with
    /// them. Unless set, that of the process: [`Budget::detect`].
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Reads the memory limit again in such intervals, for as long as there is the executor:
    /// [`Budget::follow`]. For budgets that found their limit; never unless set.
    pub fn redetect_every(mut self, interval: Duration) -> Self {
        self.redetect_every = Some(interval);
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
        self.default_lane = self.default_lane.capacity(jobs);
        self
    }

    /// How many bytes of input the jobs that wait in the default lane may hold together. As
    /// many as the executor allows in all, unless set.
    pub fn input_bytes(mut self, bytes: u64) -> Self {
        self.default_lane = self.default_lane.input_bytes(bytes);
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

    /// Decides on the numbers, without starting anything. What it says of the ledger leaves out
    /// this executor's own [`waiting_bytes`](Builder::waiting_bytes), and nothing is done to the
    /// allocator.
    ///
    /// # Errors
    ///
    /// [`BuildError`], if the number of workers or the budget cannot be decided.
    pub fn plan(&self) -> Result<Plan, BuildError> {
        let workers = self.plan_workers()?;
        Ok(Plan::new(workers, &self.find_budget()?, self.bounds_allocator))
    }

    fn find_budget(&self) -> Result<Budget, BuildError> {
        let budget = self.budget.clone().map_or_else(Budget::detect, Ok)?;
        if budget.gate().was_forked() { Err(BuildError::Forked) } else { Ok(budget) }
    }

    fn plan_workers(&self) -> Result<WorkersPlan, BuildError> {
        let policy = match self.workers {
            Some(count) => CpuPolicy::fixed(count),
            None => self.cpu_policy.clone(),
        };
        let plan = WorkersPlan::new(policy, self.cpu_policy.asks_environment(), self.nice_beyond)?;
        match plan.decided {
            0 => Err(BuildError::NoWorkers),
            asked if asked > MOST_WORKERS => {
                Err(BuildError::TooManyWorkers { asked, most: MOST_WORKERS })
            }
            _ => Ok(plan),
        }
    }

    /// Makes the executor and starts its workers.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the numbers do not add up, the budget was not given and could not be
    /// found, or the threads cannot be started: all of them where their number was given, the
    /// first one otherwise. Then nothing is left running, and the budget is as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::Executor;
    ///
    /// // As many workers as the machine is good for, and half of the memory limit.
    /// let executor = Executor::builder().build()?;
    /// println!("{}", executor.plan());
    /// assert!(executor.stats().workers >= 1);
    /// # Ok::<(), admit::BuildError>(())
    /// ```
    pub fn build(self) -> Result<Executor, BuildError> {
        let workers = self.plan_workers()?;
        if self.thread_name.contains('\0') {
            return Err(BuildError::ThreadName);
        }
        if self.stack_bytes.is_some_and(|bytes| bytes > isize::MAX as usize / 2) {
            return Err(BuildError::Workers {
                started: 0,
                asked: workers.decided,
                source: std::io::ErrorKind::OutOfMemory.into(),
            });
        }
        let lanes = self.plan_lanes(workers.decided)?;
        let guaranteed = lanes.iter().map(|lane| lane.terms.guaranteed_bytes);
        let guaranteed_bytes = guaranteed.fold(0, u64::saturating_add);
        let crew = Crew::new(self.waiting_bytes);
        let budget = self.find_budget()?;
        let gate = Arc::clone(budget.gate());
        let crew = gate.change(|state| state.attach(crew, lanes)).map_err(|available_bytes| {
            let waiting_limit_bytes = self.waiting_bytes;
            match guaranteed_bytes {
                0 => BuildError::WaitingAboveBudget { waiting_limit_bytes, available_bytes },
                _ => BuildError::GuaranteesAboveBudget {
                    waiting_limit_bytes,
                    guaranteed_bytes,
                    available_bytes,
                },
            }
        })?;
        let mut plan = Plan::new(workers, &budget, self.bounds_allocator);
        plan.allocator = allocator::settle(plan.allocator);
        let redetect_every = self.redetect_every;
        let shared = Shared::new(gate, crew, plan.retention());
        let (threads, plan) = self.start(&shared, plan)?;
        let mut executor = Executor::new(shared, threads, plan, budget);
        // The workers come first where there are few threads left.
        if let Some(every) = redetect_every {
            executor.follow(every)?;
        }
        Ok(executor)
    }

    fn all_lanes(&self) -> impl Iterator<Item = &LaneOptions> {
        std::iter::once(&self.default_lane).chain(&self.lanes)
    }

    fn guaranteed_workers(&self) -> usize {
        self.all_lanes().fold(0, |sum: usize, lane| sum.saturating_add(lane.guaranteed()))
    }

    fn plan_lanes(&self, workers: usize) -> Result<Vec<LanePlan>, BuildError> {
        let mut names = HashSet::new();
        if let Some(lane) = self.all_lanes().find(|lane| !names.insert(lane.name())) {
            return Err(BuildError::LaneTwice { lane: lane.name().to_owned() });
        }
        let guaranteed = self.guaranteed_workers();
        if guaranteed >= workers {
            return Err(BuildError::GuaranteedWorkers { guaranteed, workers });
        }
        self.all_lanes().map(|lane| lane.plan(self.waiting_bytes)).collect()
    }

    fn start(
        self,
        shared: &Arc<Shared>,
        mut plan: Plan,
    ) -> Result<(Vec<JoinHandle<()>>, Plan), BuildError> {
        let crew = shared.crew;
        let guaranteed = self.guaranteed_workers();
        let asked = plan.workers.decided;
        let mut threads = Vec::new();
        for number in 0..asked {
            let is_low = self.nice_beyond.is_some_and(|first| number >= first);
            let rank = if is_low { Rank::Low } else { Rank::Normal };
            // Counted before it runs, so that an executor that was built has all its workers.
            shared.gate.change(|state| state.start_worker(crew, rank));
            let name = format!("{}-{number}", self.thread_name);
            let its_own = Arc::clone(shared);
            match sync::spawn(name, self.stack_bytes, move || worker::run(its_own, number, rank)) {
                Ok(thread) => threads.push(thread),
                // With no more workers than are guaranteed, jobs of other lanes would never run.
                Err(source) if threads.len() <= guaranteed || plan.workers.is_explicit() => {
                    shared.gate.change(|state| {
                        state.close(crew);
                        // On behalf of the worker that was counted and never came.
                        state.may_leave(crew, rank);
                    });
                    let started = threads.len();
                    for thread in threads {
                        drop(thread.join());
                    }
                    return Err(BuildError::Workers { started, asked, source });
                }
                Err(source) => {
                    shared.gate.change(|state| state.miss_worker(crew, rank));
                    plan.workers.shortfall = Some(source.to_string());
                    break;
                }
            }
        }
        plan.workers.started = Some(threads.len());
        shared.gate.change(|state| state.stay());
        Ok((threads, plan))
    }
}
