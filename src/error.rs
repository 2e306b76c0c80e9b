//! What can go wrong: refused submissions, jobs without a value, bytes that are not there.

use std::any::Any;
use std::fmt;

use thiserror::Error;

use crate::cost::{Bytes, Cost};
use crate::sync::Mutex;

mod build;
pub use build::{BuildError, DetectError};

/// The bound that keeps a job from waiting in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The lane's number of waiting jobs.
    LaneJobs {
        /// Jobs that wait in the lane.
        waiting: usize,
        /// The most that may.
        limit: usize,
    },
    /// The lane's input bytes of waiting jobs.
    LaneInputBytes {
        /// The input of the first job that has no place.
        input_bytes: u64,
        /// Input bytes that wait in the lane.
        waiting_bytes: u64,
        /// The most that may.
        limit_bytes: u64,
    },
    /// The executor's input bytes of waiting jobs, over all lanes.
    WaitingBytes {
        /// The input of the first job that has no place.
        input_bytes: u64,
        /// Input bytes that wait in all lanes.
        waiting_bytes: u64,
        /// The most that may.
        limit_bytes: u64,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::LaneJobs { limit: 0, .. } => {
                f.write_str("the lane has capacity 0 and no worker is free to take the job")
            }
            Limit::LaneJobs { waiting, limit } => {
                write!(f, "{waiting} of at most {limit} jobs wait in the lane")
            }
            Limit::LaneInputBytes { input_bytes, limit_bytes: 0, .. } => write!(
                f,
                "no input may wait in the lane (its limit, or the executor's waiting_bytes, is 0), \
                 and no worker is free to take the job with {} of it",
                Bytes(input_bytes),
            ),
            Limit::LaneInputBytes { input_bytes, waiting_bytes, limit_bytes } => write!(
                f,
                "input of {} has no place beside {} of at most {} that wait in the lane",
                Bytes(input_bytes),
                Bytes(waiting_bytes),
                Bytes(limit_bytes),
            ),
            Limit::WaitingBytes { input_bytes, waiting_bytes, limit_bytes } => write!(
                f,
                "input of {} has no place beside {} of at most {} that wait in the executor",
                Bytes(input_bytes),
                Bytes(waiting_bytes),
                Bytes(limit_bytes),
            ),
        }
    }
}

/// Why a job was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Not now: the lane is full. Later it may be accepted.
    #[error("lane is full: {0}")]
    Full(Limit),
    /// Never, with this budget: the job needs more than can be admitted at all.
    #[error("job never fits: it needs {}, and at most {} are admissible in its lane",
        Total(*.cost), Bytes(*.admissible_bytes))]
    NeverFits {
        /// What the job declared.
        cost: Cost,
        /// The most that one job of the lane can have: by the budget, less what is guaranteed to other
        /// lanes, and by the lane's ceilings.
        admissible_bytes: u64,
    },
    /// Never, in a place that is [reserved](crate::Lane::try_reserve): the input is more than may wait in
    /// the lane at all.
    #[error("input never has a place: it is {}, and at most {} may wait in the lane",
        Bytes(*.input_bytes), Bytes(*.limit_bytes))]
    InputAbove {
        /// The declared input.
        input_bytes: u64,
        /// The most that may wait, in the lane and in the executor.
        limit_bytes: u64,
    },
    /// The job waited outside a lane for bytes that permits hold, and the budget
    /// [has stood still](crate::Budget::set_stall_timeout) for too long.
    #[error("budget stands still: job needs {} and {} are free; no job runs, and {permits} permits \
        hold {}", Total(*.cost), Bytes(*.free_bytes), Bytes(*.held_bytes))]
    Stalled {
        /// What the job declared.
        cost: Cost,
        /// Admissible bytes that nobody holds.
        free_bytes: u64,
        /// Permits that are held, acquired or kept.
        permits: u64,
        /// Their bytes.
        held_bytes: u64,
    },
    /// The job's [time to start](crate::Lane::start_within) was over before the lane had a place.
    #[error("time to start was over before the lane had a place")]
    Expired,
    /// The executor is closed.
    #[error("executor is closed")]
    Closed,
    /// The lane is full, and the caller is a worker of the executor or of another one on the
    /// same budget. Were all workers to wait for places, none would be left to make one; and the
    /// bytes that the caller's job holds may be those that the head of the lane waits for.
    #[error("a worker may not wait for a place in a lane of its own executor or budget")]
    OwnWorker,
    /// The caller is a job, and the lane's executor waits, directly or through others, for it.
    #[error("waiting for a place would close a circle of jobs that wait for each other")]
    Circle,
    /// The process was forked after the executor was built, and threads do not survive a fork.
    #[error("executor was built before this process was forked and has no workers here")]
    Forked,
}

/// What a cost comes to, and its parts where there are two.
struct Total(Cost);

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.total_bytes() {
            Some(bytes) if self.0.input_bytes() == 0 => Bytes(bytes).fmt(f),
            Some(bytes) => write!(f, "{} ({})", Bytes(bytes), self.0),
            None => write!(f, "{}, more than can be counted", self.0),
        }
    }
}

/// A submission that was refused, with the closure it came with.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, MIB, Refused};
///
/// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
/// let name = String::from("kept");
/// let refused = executor.submit(Cost::new(65 * MIB), move || name).unwrap_err();
/// assert!(matches!(refused.reason, Refused::NeverFits { admissible_bytes, .. } if admissible_bytes == 64 * MIB));
/// assert_eq!((refused.work)(), "kept");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SubmitError<F> {
    /// Why it was refused.
    pub reason: Refused,
    /// The closure, untouched.
    pub work: F,
}

impl<F> fmt::Debug for SubmitError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for SubmitError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<F> std::error::Error for SubmitError<F> {}

/// For `?` where the closure is not to travel with the error.
impl<F> From<SubmitError<F>> for Refused {
    fn from(error: SubmitError<F>) -> Refused {
        error.reason
    }
}

/// Why a handle has no value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The job panicked.
    #[error("job panicked: {0}")]
    Panicked(Panic),
    /// The job was cancelled before it started.
    #[error("job was cancelled before it started")]
    Cancelled,
    /// The executor was dropped, or told to abort what waits, before the job started.
    #[error("executor was closed before the job started")]
    Closed,
    /// The job's [time to start](crate::Lane::start_within) was over before it did.
    #[error("time to start was over before the job did")]
    Expired,
    /// The budget shrank while the job waited, and it can never be admitted any more.
    #[error("job can never start: it needs {}, and since the budget shrank {} are admissible",
        Bytes(*.needed_bytes), Bytes(*.admissible_bytes))]
    NeverFits {
        /// The job's working and input bytes.
        needed_bytes: u64,
        /// The most that can be admitted at once.
        admissible_bytes: u64,
    },
    /// The job waited for bytes that permits hold, and the budget
    /// [has stood still](crate::Budget::set_stall_timeout) for too long. Perhaps the caller holds
    /// them: results that were kept and not dropped.
    #[error("budget stands still: job needs {} and {} are free; no job runs, and {permits} permits \
        hold {}", Bytes(*.needed_bytes), Bytes(*.free_bytes), Bytes(*.held_bytes))]
    Stalled {
        /// The job's working and input bytes.
        needed_bytes: u64,
        /// Admissible bytes that nobody holds.
        free_bytes: u64,
        /// Permits that are held, acquired or kept.
        permits: u64,
        /// Their bytes.
        held_bytes: u64,
    },
    /// The job has not started, and the caller is a job on the same budget that holds less than it
    /// needs: it can neither be run within the caller's bytes nor waited for, since those may be the
    /// bytes it waits for. The job goes on.
    #[error("job has not started and needs {}, more than the {} that the job which would wait for \
        it holds", Bytes(*.needed_bytes), Bytes(*.held_bytes))]
    AboveOwn {
        /// The job's working and input bytes.
        needed_bytes: u64,
        /// What the caller's job holds.
        held_bytes: u64,
    },
    /// The job waits, directly or through others, for the caller's job. It goes on.
    #[error("waiting for the job would close a circle of jobs that wait for each other")]
    Circle,
    /// The job has not finished, and the caller is the drop of a closure that will not run, which an
    /// executor on the same budget waits for. The job goes on.
    #[error("the drop of a job's closure may not wait for a job of the same budget")]
    OwnWorker,
    /// The process was forked after the executor was built, and threads do not survive a fork.
    #[error("executor was built before this process was forked and has no workers here")]
    Forked,
}

/// What a job panicked with.
pub struct Panic(Mutex<Box<dyn Any + Send>>);

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        Panic(Mutex::new(payload))
    }

    /// The payload, as [`std::panic::catch_unwind`] gives it.
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.0.into_inner()
    }

    /// Goes on panicking with the job's payload in the calling thread.
    ///
    /// # Panics
    ///
    /// Always.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.into_payload())
    }

    /// The message, if the payload is one, as it is for `panic!` with a text.
    pub fn message(&self) -> Option<String> {
        let payload = self.0.lock();
        let text = payload.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_deref().unwrap_or("payload is not a text"))
    }
}

/// Why bytes were not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Not now: the bytes are held, or wanted by somebody who came first.
    #[error("budget has not enough free bytes now: {} needed, {} of {} free",
        Bytes(*.needed_bytes), Bytes(*.free_bytes), Bytes(*.admissible_bytes))]
    NotNow {
        /// What was asked for.
        needed_bytes: u64,
        /// What nobody holds.
        free_bytes: u64,
        /// The most that can be held at once.
        admissible_bytes: u64,
    },
    /// Never, with this budget.
    #[error("budget never has enough bytes: {} needed, {} admissible",
        Bytes(*.needed_bytes), Bytes(*.admissible_bytes))]
    NeverFits {
        /// What was asked for.
        needed_bytes: u64,
        /// The most that can be held at once.
        admissible_bytes: u64,
    },
    /// Permits hold the bytes, and the budget
    /// [has stood still](crate::Budget::set_stall_timeout) for too long.
    #[error("budget stands still: {} needed and {} free; no job runs, and {permits} permits hold {}",
        Bytes(*.needed_bytes), Bytes(*.free_bytes), Bytes(*.held_bytes))]
    Stalled {
        /// What was asked for.
        needed_bytes: u64,
        /// Admissible bytes that nobody holds.
        free_bytes: u64,
        /// Permits that are held, acquired or kept.
        permits: u64,
        /// Their bytes.
        held_bytes: u64,
    },
    /// A job cannot keep what it does not hold.
    #[error("job holds {} and cannot keep {}", Bytes(*.held_bytes), Bytes(*.kept_bytes))]
    NotHeld {
        /// What it was to keep.
        kept_bytes: u64,
        /// What it holds.
        held_bytes: u64,
    },
    /// The job has ended, and holds nothing.
    #[error("job has ended")]
    Ended,
    /// The caller is a worker of an executor on this budget. Its job holds bytes already, and
    /// jobs that all hold some and wait for more would wait for ever.
    #[error("a job may not wait for more bytes of the budget it was admitted by")]
    OwnWorker,
    /// The caller is a job, and the budget's jobs wait, directly or through others, for it.
    #[error("waiting for bytes would close a circle of jobs that wait for each other")]
    Circle,
    /// The process was forked after the budget was made, and its lock may be held by a thread that
    /// does not exist here. A child makes a budget of its own.
    #[error("budget was made before this process was forked")]
    Forked,
}

/// Why a drain did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DrainError {
    /// The time was over first.
    #[error("executor is not drained: {running_jobs} jobs run and {waiting_jobs} wait")]
    Unfinished {
        /// Jobs that still run.
        running_jobs: usize,
        /// Jobs that still wait.
        waiting_jobs: usize,
    },
    /// The caller is one of the executor's own workers and would wait for itself, or a worker of
    /// another executor on the same budget and could.
    #[error("a worker may not wait for the end of an executor that is its own or on its budget")]
    OwnWorker,
    /// The caller is a job, and the executor's jobs wait, directly or through others, for it.
    #[error("waiting for the end would close a circle of jobs that wait for each other")]
    Circle,
    /// The process was forked after the executor was built, and threads do not survive a fork.
    #[error("executor was built before this process was forked and has no workers here")]
    Forked,
}
