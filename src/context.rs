//! What a running job may ask about itself.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use crate::bench::Ended;
use crate::job::Job;
use crate::sync::thread_local;

thread_local! {
    /// Whom this thread works for, if it is a worker.
    static WORKS_FOR: Cell<Option<Employer>> = const { Cell::new(None) };
    static RUNNING: RefCell<Option<Arc<dyn Job>>> = const { RefCell::new(None) };
}

/// An executor by its place: the address of its budget's gate, and its crew there. Its workers
/// keep both alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Employer {
    pub(crate) gate: usize,
    pub(crate) crew: usize,
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

/// Runs a job with itself as the thread's context.
pub(crate) fn run(job: Arc<dyn Job>) -> (Arc<dyn Job>, Ended) {
    RUNNING.with(|running| {
        running.replace(Some(job));
        // The borrow is shared, so that the job may borrow too.
        let ended = running.borrow().as_ref().expect("put there above").run();
        (running.take().expect("put there above"), ended)
    })
}

/// The job that runs on the current thread, as it sees itself.
///
/// A context may be sent to other threads that work for the job, and may outlive it.
///
/// # Examples
///
/// A job that stops when it is no longer wanted:
///
/// ```
/// use std::sync::mpsc::channel;
/// use admit::{Budget, Context, Cost, Executor, MIB};
///
/// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
/// let (started, is_running) = channel();
/// let handle = executor.submit(Cost::new(MIB), move || {
///     let context = Context::current().expect("this is a job");
///     started.send(()).expect("the caller waits for it");
///     while !context.is_cancelled() {
///         std::thread::yield_now();
///     }
///     "stopped half-way"
/// })?;
/// is_running.recv()?;
/// handle.cancel();
/// assert_eq!(handle.join()?, "stopped half-way");
/// assert!(Context::current().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Context {
    job: Arc<dyn Job>,
}

impl Context {
    /// The context of the job that runs on this thread, if one does.
    pub fn current() -> Option<Context> {
        let job = RUNNING.try_with(|job| job.try_borrow().ok()?.clone()).ok().flatten()?;
        Some(Context { job })
    }

    /// Whether the job's handle asked it to stop. What to do about it is up to the job: the
    /// handle gets whatever the job returns.
    pub fn is_cancelled(&self) -> bool {
        self.job.is_asked_to_cancel()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
