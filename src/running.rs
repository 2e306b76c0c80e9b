//! Whom a thread works for, and what runs on it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::answer::{JobId, Slot};
use crate::counts::Ended;
use crate::job::Job;
use crate::sync::thread_local;
use crate::sys::fork::Generation;

thread_local! {
    /// Whom this thread works for: first the executor whose worker it is, if it is one, and then those
    /// for which it does something as their workers would.
    static WORKS_FOR: RefCell<Vec<Employer>> = const { RefCell::new(Vec::new()) };
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
    let is_noted = WORKS_FOR.try_with(|works_for| works_for.borrow_mut().push(employer)).is_ok();
    act();
    if is_noted {
        WORKS_FOR.with(|works_for| works_for.borrow_mut().pop());
    }
}

/// Whose worker this thread is, or does the work of.
pub(crate) fn employer() -> Option<Employer> {
    WORKS_FOR.try_with(|works_for| works_for.borrow().first().copied()).ok().flatten()
}

/// Whether this thread works for any of these.
pub(crate) fn works_for(is_one: impl Fn(&Employer) -> bool) -> bool {
    WORKS_FOR.try_with(|works_for| works_for.borrow().iter().any(is_one)).unwrap_or(false)
}

/// Whether the executor waits for something that this thread does: a job, or the drop of one.
pub(crate) fn is_awaited_by(executor: Employer) -> bool {
    let runs = |within: &RefCell<Vec<Running>>| within.borrow().iter().any(|it| it.of == executor);
    works_for(|employer| *employer == executor) || WITHIN.try_with(runs).unwrap_or(false)
}

pub(crate) fn work_for(employer: Employer) {
    WORKS_FOR.with(|works_for| works_for.borrow_mut().push(employer));
}

/// A job on its worker.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) id: JobId,
    /// Whose job it is.
    pub(crate) of: Employer,
    /// Where its bytes are: of a job that another one runs, those of the other.
    pub(crate) executor: ExecutorId,
    pub(crate) slot: Slot,
}

/// How long it takes, where somebody wants to know: a look at the precise clock costs as much as two
/// locks.
pub(crate) fn timed<R>(run: impl FnOnce() -> R) -> (R, Option<Duration>) {
    let began = cfg!(feature = "hdrhistogram").then(Instant::now);
    let result = run();
    (result, began.map(|began| began.elapsed()))
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
