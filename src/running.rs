//! Whom a thread works for, and what runs on it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::answer::{JobId, Slot};
use crate::counts::Ended;
use crate::job::Job;
use crate::sync::thread_local;
use crate::sys::fork::Generation;

thread_local! {
    /// Whom this thread works for, if it is a worker.
    static WORKS_FOR: Cell<Option<Employer>> = const { Cell::new(None) };
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
    /// Jobs that the running one waits for and runs itself, the innermost last.
    static WITHIN: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// An executor by its place: the address of its budget's gate, and its crew there. Its workers
/// keep both alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Employer {
    pub(crate) gate: usize,
    pub(crate) crew: usize,
}

/// Names an executor, for handles: there is one for every job, and counting references for
/// each would cost every job two atomic operations on one shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutorId {
    pub(crate) number: u64,
    pub(crate) place: Employer,
    pub(crate) generation: Generation,
}

/// Does something for an executor as one of its workers would: it must not wait for the
/// executor either.
pub(crate) fn as_worker_of(employer: Employer, act: impl FnOnce()) {
    let before = WORKS_FOR.try_with(|works_for| works_for.replace(Some(employer)));
    act();
    if let Ok(before) = before {
        WORKS_FOR.with(|works_for| works_for.set(before));
    }
}

pub(crate) fn employer() -> Option<Employer> {
    WORKS_FOR.try_with(Cell::get).ok().flatten()
}

pub(crate) fn work_for(employer: Employer) {
    WORKS_FOR.with(|works_for| works_for.set(Some(employer)));
}

/// A job on its worker.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) id: JobId,
    /// Where its bytes are: of a job that another one runs, those of the other.
    pub(crate) executor: ExecutorId,
    pub(crate) slot: Slot,
}

/// Runs a job as what the thread runs.
pub(crate) fn run(running: Running) -> (Arc<dyn Job>, Ended) {
    RUNNING.with(|place| {
        place.replace(Some(running));
        // The borrow is shared, so that the job may borrow too.
        let ended = place.borrow().as_ref().expect("put there above").job.run();
        (place.take().expect("put there above").job, ended)
    })
}

/// Runs a job within the one that runs on this thread.
pub(crate) fn run_within(running: Running) -> Ended {
    let job = Arc::clone(&running.job);
    WITHIN.with(|within| within.borrow_mut().push(running));
    // A job catches its panics, so what was pushed is popped.
    let ended = job.run();
    WITHIN.with(|within| within.borrow_mut().pop());
    ended
}

/// The job that runs on this thread.
pub(crate) fn current() -> Option<Running> {
    let within = WITHIN.try_with(|within| within.try_borrow().ok()?.last().cloned());
    let running = || RUNNING.try_with(|running| running.try_borrow().ok()?.clone());
    within.ok().flatten().or_else(|| running().ok().flatten())
}
