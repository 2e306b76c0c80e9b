//! What the state machine asks for, to be carried out when its lock is released.

use crate::answer::LaneId;
use crate::ledger::Ledger;

/// What a waiter is told when its wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The job has its place, the permit its bytes, the worker its work, the drain its end.
    Go,
    /// The executor was closed first.
    Closed,
    /// The budget shrank below the need.
    NeverFits,
    /// The budget has stood still for too long.
    Stalled,
    /// The job's time to start is over.
    Expired,
}

/// How a waiting job ended without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its handle cancelled it.
    Cancelled,
    /// The executor was told to abort what waits.
    Aborted,
    /// The budget shrank below its need.
    NeverFits { needed_bytes: u64, admissible_bytes: u64 },
    /// The budget, as it was then, has stood still for too long.
    Stalled { needed_bytes: u64, ledger: Ledger },
    /// Its time to start was over.
    Expired,
}

/// A job that left the queue, or the workers' bench, without running. Its bytes stay until the
/// closure is dropped and [`Admission::left`](crate::admission::Admission::left) says so (I4).
#[derive(Debug)]
pub(crate) struct Gone<J> {
    pub(crate) job: J,
    pub(crate) fate: Fate,
    pub(crate) place: Place,
}

/// What a job that will not run still occupies, until its closure is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// It left a queue.
    Waiting { at: LaneId, input_bytes: u64 },
    /// It was admitted, and no worker had fetched it.
    Admitted { at: LaneId, bytes: u64 },
}

impl Place {
    pub(crate) fn at(&self) -> LaneId {
        let (Place::Waiting { at, .. } | Place::Admitted { at, .. }) = *self;
        at
    }
}

/// What the caller of the state machine has to do once the lock is released (I7).
#[derive(Debug)]
pub(crate) struct Effects<J, W> {
    /// Whom to wake.
    pub(crate) told: Vec<(W, Verdict)>,
    /// Jobs to end.
    pub(crate) gone: Vec<Gone<J>>,
    /// Jobs whose submitters take them back. Dropping these references runs no user code.
    pub(crate) returned: Vec<J>,
}

impl<J, W> Effects<J, W> {
    pub(crate) fn new() -> Self {
        Effects { told: Vec::new(), gone: Vec::new(), returned: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.gone.is_empty() && self.returned.is_empty()
    }
}
