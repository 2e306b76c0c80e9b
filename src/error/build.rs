//! Why something cannot be built, or a limit not be found.

use thiserror::Error;

use crate::cost::Bytes;

/// Why a budget or an executor cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The process was forked after the budget was made, and its lock may be held by a thread that
    /// does not exist here. A child makes a budget of its own.
    #[error("budget was made before this process was forked")]
    Forked,
    /// The reserve is larger than the capacity.
    #[error("reserve of {} is larger than the budget's capacity of {}",
        Bytes(*.reserve_bytes), Bytes(*.capacity_bytes))]
    ReserveAboveCapacity {
        /// The reserve that was asked for.
        reserve_bytes: u64,
        /// The capacity that was asked for.
        capacity_bytes: u64,
    },
    /// The limit of waiting bytes is larger than what the budget has left.
    #[error("limit of {} for waiting input is larger than the {} that the budget has left",
        Bytes(*.waiting_limit_bytes), Bytes(*.available_bytes))]
    WaitingAboveBudget {
        /// The limit that was asked for.
        waiting_limit_bytes: u64,
        /// Capacity less reserve, less the limits of other executors on the same budget, less
        /// what jobs and permits hold.
        available_bytes: u64,
    },
    /// A lane may hold more waiting bytes than the whole executor.
    #[error("lane {lane:?} may hold {} of waiting input, and the whole executor only {}",
        Bytes(*.lane_bytes), Bytes(*.waiting_limit_bytes))]
    LaneAboveWaiting {
        /// The lane.
        lane: String,
        /// Its limit.
        lane_bytes: u64,
        /// The executor's limit.
        waiting_limit_bytes: u64,
    },
    /// The bytes that are guaranteed to lanes, with the limit of waiting bytes, are more than the
    /// budget has left.
    #[error("{} guaranteed to lanes and {} for waiting input are more than the {} \
        that the budget has left",
        Bytes(*.guaranteed_bytes), Bytes(*.waiting_limit_bytes), Bytes(*.available_bytes))]
    GuaranteesAboveBudget {
        /// The bytes that are guaranteed, over all lanes.
        guaranteed_bytes: u64,
        /// The limit of waiting bytes.
        waiting_limit_bytes: u64,
        /// Capacity less reserve, less what is set aside for other executors on the same budget,
        /// less what jobs and permits hold.
        available_bytes: u64,
    },
    /// The workers that are guaranteed to lanes leave none for the other jobs.
    #[error("{guaranteed} workers are guaranteed to lanes, and there are {workers} in all")]
    GuaranteedWorkers {
        /// The workers that are guaranteed, over all lanes.
        guaranteed: usize,
        /// The workers that there are to be, or could be started.
        workers: usize,
    },
    /// A lane's share is not among those that are possible.
    #[error("lane {lane:?} has a share of {share}, and must have 1 to {most}")]
    LaneShare {
        /// The lane.
        lane: String,
        /// The share that was asked for.
        share: u32,
        /// The largest.
        most: u32,
    },
    /// A lane is guaranteed more bytes than it may have.
    #[error("lane {lane:?} is guaranteed {}, and may have {} at most",
        Bytes(*.guaranteed_bytes), Bytes(*.most_bytes))]
    LaneBytes {
        /// The lane.
        lane: String,
        /// What is guaranteed.
        guaranteed_bytes: u64,
        /// Its ceiling.
        most_bytes: u64,
    },
    /// A lane is guaranteed more workers than it may have, or may have none.
    #[error("lane {lane:?} is guaranteed {guaranteed} workers, and may have {most} at most")]
    LaneWorkers {
        /// The lane.
        lane: String,
        /// What is guaranteed.
        guaranteed: usize,
        /// Its ceiling.
        most: usize,
    },
    /// The executor that a lane was to be added to is closed.
    #[error("executor is closed")]
    Closed,
    /// Two lanes have the same name.
    #[error("there are two lanes with the name {lane:?}")]
    LaneTwice {
        /// The name.
        lane: String,
    },
    /// The part of a limit that is to be kept in reserve is not between 0 and 1.
    #[error("reserve is {fraction} of the limit, and must be between 0 and 1 of it")]
    ReserveFraction {
        /// The part that was asked for.
        fraction: f64,
    },
    /// No budget was given, and none could be found.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The number of workers, or the most of them, is zero.
    #[error("number of workers must be at least 1")]
    NoWorkers,
    /// The environment variable that may set the number of workers is not a list of
    /// `program=workers`.
    #[error(
        "environment variable ADMIT_WORKERS is {value:?}, \
        and should be like \"server=16\" or \"server=16,other=4\""
    )]
    Environment {
        /// Its value.
        value: String,
    },
    /// The workers' name has a NUL byte in it, which no thread's name may have.
    #[error("name of the worker threads has a nul byte in it")]
    ThreadName,
    /// More workers than make sense, or than are safe: with tens of thousands of stacks a process
    /// runs out of memory mappings, and the standard library aborts it.
    #[error("{asked} workers are too many: at most {most} are allowed")]
    TooManyWorkers {
        /// How many were asked for.
        asked: usize,
        /// The most that are allowed.
        most: usize,
    },
    /// A thread could not be started. Those that had been were stopped again. Only where the
    /// number of workers was given, or not even one came to life.
    #[error("only {started} of {asked} workers could be started: {source}")]
    Workers {
        /// How many had started.
        started: usize,
        /// How many were asked for.
        asked: usize,
        /// Why the next one did not.
        source: std::io::Error,
    },
}

/// Why a memory limit was not found, or is not followed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DetectError {
    /// A limit could not be read. It may be lower than all that could be.
    #[error(
        "memory limit of this process could not be read: {why}; \
        a budget can be given its capacity instead"
    )]
    Unread {
        /// What was tried, and why it failed.
        why: String,
    },
    /// The budget was given its capacity, and keeps it.
    #[error("budget was given its capacity and does not look for a limit")]
    Given,
    /// The interval is zero.
    #[error("interval between two readings of the memory limit must be longer than 0 seconds")]
    Interval,
    /// The thread that is to take the readings could not be started.
    #[error("thread that reads the memory limit could not be started: {0}")]
    Thread(std::io::Error),
    /// The process was forked after the budget was made, and its lock may be held by a thread that
    /// does not exist here. A child makes a budget of its own.
    #[error("budget was made before this process was forked")]
    Forked,
}
