//! One job: its closure until it runs, its outcome until somebody takes it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::admission::{Fate, Verdict};
use crate::crew::Ended;
use crate::error::{JoinError, Panic};
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::waiter::Waiter;

/// A job as the gate and the workers know it.
pub(crate) trait Job: Send + Sync {
    /// Runs the closure and keeps the outcome. When this returns, the closure is dropped.
    fn run(&self) -> Ended;
    /// Shows the outcome of [`run`](Job::run) to the handle.
    fn complete(&self);
    /// Drops the closure of a job that will not run.
    fn discard(&self);
    /// Tells the handle of a job that did not run why.
    fn end(&self, fate: Fate);
    fn ask_to_cancel(&self);
    fn is_asked_to_cancel(&self) -> bool;
}

/// A job as its handle knows it.
pub(crate) trait Outcome<T>: Job {
    fn is_finished(&self) -> bool;
    fn take(&self) -> Option<Result<T, JoinError>>;
    /// `false`: it has finished, and nobody will tell the waiter.
    fn tell_when_finished(&self, waiter: Option<Arc<Waiter>>) -> bool;
    /// Nobody will take the outcome: it is dropped as soon as it is there.
    fn abandon(&self);
}

/// Where a job's parts live. One allocation holds them all, and the closure's memory is used
/// again for nothing: a cell whose closure has run is empty, so that a reference which outlives
/// the job (in the context, or on its way through the gate) keeps nothing of the user's alive.
pub(crate) struct Cell<F, T> {
    cancel: AtomicBool,
    /// Mirrors `parts.finished`, for those who look without the lock.
    finished: AtomicBool,
    parts: Mutex<Parts<F, T>>,
}

struct Parts<F, T> {
    work: Option<F>,
    outcome: Option<Result<T, JoinError>>,
    finished: bool,
    abandoned: bool,
    joiner: Option<Arc<Waiter>>,
}

impl<F, T> Cell<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    pub(crate) fn new(work: F) -> Self {
        Cell {
            cancel: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            parts: Mutex::new(Parts {
                work: Some(work),
                outcome: None,
                finished: false,
                abandoned: false,
                joiner: None,
            }),
        }
    }

    /// Takes the closure back, for a submission that was refused.
    pub(crate) fn take_back(&self) -> F {
        self.parts.lock().work.take().expect("a refused job has not run")
    }

    /// Stores the outcome, or drops it if nobody will take it.
    fn keep(&self, outcome: Result<T, JoinError>) {
        let mut parts = self.parts.lock();
        if parts.abandoned {
            drop(parts);
            drop_quietly(outcome);
        } else {
            parts.outcome = Some(outcome);
        }
    }
}

impl<F, T> Job for Cell<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn run(&self) -> Ended {
        if self.is_asked_to_cancel() {
            self.discard();
            self.keep(Err(JoinError::Cancelled));
            return Ended::Cancelled;
        }
        let work = self.parts.lock().work.take().expect("a job runs once");
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => {
                self.keep(Ok(value));
                Ended::Completed
            }
            Err(payload) => {
                self.keep(Err(JoinError::Panicked(Panic::new(payload))));
                Ended::Panicked
            }
        }
    }

    fn complete(&self) {
        let mut parts = self.parts.lock();
        parts.finished = true;
        self.finished.store(true, Ordering::Release);
        let joiner = parts.joiner.take();
        // A handle that was dropped since `run` kept the outcome has left it to us.
        let nobody_takes = if parts.abandoned { parts.outcome.take() } else { None };
        drop(parts);
        if let Some(outcome) = nobody_takes {
            drop_quietly(outcome);
        }
        if let Some(joiner) = joiner {
            joiner.tell(Verdict::Go);
        }
    }

    fn discard(&self) {
        let work = self.parts.lock().work.take();
        drop_quietly(work);
    }

    fn end(&self, fate: Fate) {
        self.keep(Err(match fate {
            Fate::Cancelled => JoinError::Cancelled,
            Fate::Aborted => JoinError::Closed,
            Fate::NeverFits { needed_bytes, admissible_bytes } => {
                JoinError::NeverFits { needed_bytes, admissible_bytes }
            }
        }));
        self.complete();
    }

    fn ask_to_cancel(&self) {
        self.cancel.store(true, Ordering::Release);
    }

    fn is_asked_to_cancel(&self) -> bool {
        self.cancel.load(Ordering::Acquire)
    }
}

impl<F, T> Outcome<T> for Cell<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    fn take(&self) -> Option<Result<T, JoinError>> {
        let mut parts = self.parts.lock();
        if parts.finished { parts.outcome.take() } else { None }
    }

    fn tell_when_finished(&self, waiter: Option<Arc<Waiter>>) -> bool {
        let mut parts = self.parts.lock();
        parts.joiner = waiter;
        !parts.finished
    }

    fn abandon(&self) {
        let mut parts = self.parts.lock();
        parts.abandoned = true;
        // An outcome that is not shown yet is the worker's to drop, before it goes on: a scope
        // may end as soon as the worker has shown it.
        let outcome = if parts.finished { parts.outcome.take() } else { None };
        drop(parts);
        drop(outcome);
    }
}

/// Drops a value of the user's on a thread that must survive whatever the value does.
pub(crate) fn drop_quietly<T>(value: T) {
    let mut payload: Option<Box<dyn Any + Send>> =
        catch_unwind(AssertUnwindSafe(|| drop(value))).err();
    // The payload is the user's as well, and so is what its drop may panic with.
    while let Some(next) = payload {
        payload = catch_unwind(AssertUnwindSafe(|| drop(next))).err();
    }
}
