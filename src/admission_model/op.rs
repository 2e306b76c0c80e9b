//! What can happen in a history.

use crate::accounts::Terms;
use crate::counts::Ended;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Patience {
    Try,
    /// The job lands in the intake, if that has credit for it.
    OnCredit,
    OwnWorker,
    Wait,
}

/// Whom an operation is about is told by a number, modulo those whom it could be about.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Attach {
        limit: u64,
        lanes: Vec<(usize, u64, Terms)>,
        workers: u8,
    },
    PassTime(u64),
    AddLane {
        crew: u8,
        jobs: usize,
        terms: Terms,
        newest_first_after: Option<u64>,
    },
    LetLaneGo(u8),
    SetOvertaking(Overtaking),
    SetOversize {
        oversize: Oversize,
        is_capacity_hard: bool,
    },
    Detach(u8),
    StartWorker(u8),
    Offer {
        crew: u8,
        lane: u8,
        working: u64,
        input: u64,
        patience: Patience,
        /// In how many nanoseconds it must not start any more.
        within: Option<u64>,
    },
    /// A place is taken for a job that is still to come.
    Reserve {
        crew: u8,
        lane: u8,
        working: u64,
        input: u64,
        within: Option<u64>,
    },
    /// The job will have another cost.
    Declare(u8, u64, u64),
    EnterReserved(u8),
    GiveUpReserved(u8),
    Withdraw(u8),
    Cancel(u8),
    Left(u8),
    /// A worker that does not lie on the bench does what it does next.
    Work {
        worker: u8,
        ended: Ended,
        stays_awake: bool,
    },
    Close(u8),
    Abort(u8),
    WaitForEnd(u8),
    StopWaitingForEnd(u8),
    Request {
        bytes: u64,
        waits: bool,
    },
    WithdrawRequest(u8),
    Release(u8),
    Shrink(u8, u64),
    Split(u8, u64),
    /// A job in flight keeps some of its bytes, or wants more.
    Keep(u8, u64),
    /// A job that runs waits for one that waits in a lane.
    Within(u8, u8),
    Grow(u8, u64),
    /// Somebody who waits looks whether the budget stands still.
    Look,
    Resize {
        capacity: u64,
        reserve: u64,
    },
}
