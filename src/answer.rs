//! What one asks the state machine about, and what it answers.

use crate::error::Limit;
use crate::sys::clock::Moment;

/// Names a lane: the executor's crew and the lane's place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneId {
    pub(crate) crew: usize,
    pub(crate) lane: usize,
}

/// Names a waiting job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) at: LaneId,
    pub(crate) seq: u64,
}

/// Names a job that is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) crew: usize,
    pub(crate) slot: usize,
    pub(crate) seq: u64,
}

/// Names a job in the process: its budget's gate, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobId {
    pub(crate) gate: usize,
    pub(crate) seq: u64,
}

/// The answer to a job that waits for another one.
#[derive(Clone, Debug)]
pub(crate) enum Within<J> {
    /// It is the caller's to run.
    Runs { job: J, input_bytes: u64, since: Moment },
    /// It has not started, and needs more than the caller holds.
    Above { needed_bytes: u64 },
    /// A worker has it or will have it, or it has ended.
    Elsewhere,
}

/// The answer to a job that wants to hold more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    Granted,
    NotNow {
        free_bytes: u64,
    },
    NeverFits {
        held_bytes: u64,
        admissible_bytes: u64,
    },
    /// The job has ended.
    Ended,
}

/// Which bound a submission met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full(Limit),
    OwnWorker,
    NeverFits {
        admissible_bytes: u64,
    },
    /// The input is more than may ever wait.
    InputAbove {
        limit_bytes: u64,
    },
    Expired,
    Closed,
}

/// The answer to an offered job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// It has its place in the queue, or was admitted at once.
    Accepted(Ticket),
    /// It stands outside the bound. The submitter must wait or withdraw it.
    Outside(Ticket),
    Refused(Refusal),
}

/// The answer to a request for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Granted { seq: u64 },
    Waiting { seq: u64 },
    NeverFits { admissible_bytes: u64 },
}

/// Why a lane cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Closed,
    /// There is one with its name.
    Twice,
    /// It is guaranteed more bytes than are not guaranteed to others.
    Bytes {
        available_bytes: u64,
    },
    /// No worker would be left over.
    Workers {
        guaranteed: usize,
        workers: usize,
    },
}
