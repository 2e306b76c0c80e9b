//! One job: its closure until it runs, its outcome until somebody takes it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::counts::Ended;
use crate::effects::{Fate, Verdict};
use crate::error::{JoinError, Panic};
use crate::sync::{AtomicBool, AtomicU8, Mutex, Ordering};
use crate::trace::Trace;
use crate::waiter::Waiter;

/// A job as the gate and the workers know it.
pub(crate) trait Job: Send + Sync {
    /// Runs the closure and keeps the outcome. When this returns, the closure is dropped.
    fn run(&self) -> Ended;
    /// The same for a job that must not start any more: drops the closure.
    fn expire(&self) -> Ended;
    /// Shows the outcome of [`run`](Job::run) to the handle.
    fn complete(&self);
    /// Drops the closure of a job that will not run.
    fn discard(&self);
    /// Tells the handle of a job that did not run why.
    fn end(&self, fate: Fate);
    fn ask_to_cancel(&self);
    fn is_asked_to_cancel(&self) -> bool;
    /// Whether it has ended, as its handle would say.
    fn is_finished(&self) -> bool;
}

/// A job as its handle knows it.
pub(crate) trait Outcome<T>: Job {
    fn take(&self) -> Option<Result<T, JoinError>>;
    /// `false`: it has finished, and nobody will tell the waiter.
    fn tell_when_finished(&self, waiter: Arc<Waiter>) -> bool;
    /// Forgets the waiter, unless it was told already.
    fn tell_nobody(&self);
    /// Nobody will take the outcome: it is dropped as soon as it is there.
    fn abandon(&self);
}

/// Not ended, and nobody waits for that.
const OPEN: u8 = 0;
/// Not ended, and the joiner in the parts is to be told. Set and taken back by the handle.
const AWAITED: u8 = 1;
/// The handle is gone. If it went first, the worker drops the outcome.
const ABANDONED: u8 = 2;
/// Ended. Set once, by the worker or whoever ended the job without running it; from then on
/// the outcome is the handle's.
const FINISHED: u8 = 3;

/// Where a job's parts live, in one allocation. A cell whose job has ended and whose outcome
/// was taken or abandoned is empty, so that a reference which outlives the job (in a context,
/// or on its way through the gate) keeps nothing of the user's alive.
pub(crate) struct Cell<F, T> {
    /// Worker and handle each announce what they do with one exchange, and whoever comes
    /// second sees the other's announcement: an outcome is dropped by exactly one of them.
    state: AtomicU8,
    cancel: AtomicBool,
    /// Whether there is an outcome in the parts that has to be dropped.
    kept: AtomicBool,
    /// The handle is gone, of a job whose values need no drop. Not in the state: most handles that are
    /// dropped are such, and a store costs less than an exchange. It can be missed by a worker that
    /// finishes at the same moment; then what a failed job left goes with the cell.
    detached: AtomicBool,
    trace: Trace,
    parts: Mutex<Parts<F, T>>,
}

struct Parts<F, T> {
    stage: Stage<F, T>,
    joiner: Option<Arc<Waiter>>,
}

/// The closure and the outcome use the same memory, one after the other: it is touched for
/// every job, and a long queue of jobs does not fit the processor's caches.
enum Stage<F, T> {
    Work(F),
    Value(T),
    Failed(Box<JoinError>),
    Empty,
}

impl<F, T> Stage<F, T> {
    fn take_work(&mut self) -> Option<F> {
        match std::mem::replace(self, Stage::Empty) {
            Stage::Work(work) => Some(work),
            other => {
                *self = other;
                None
            }
        }
    }

    fn take_outcome(&mut self) -> Option<Result<T, JoinError>> {
        match std::mem::replace(self, Stage::Empty) {
            Stage::Value(value) => Some(Ok(value)),
            Stage::Failed(error) => Some(Err(*error)),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl<F, T> Cell<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    pub(crate) fn new(work: F, trace: Trace) -> Self {
        Cell {
            state: AtomicU8::new(OPEN),
            cancel: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            trace,
            parts: Mutex::new(Parts { stage: Stage::Work(work), joiner: None }),
        }
    }

    /// Takes the closure back, for a submission that was refused.
    pub(crate) fn take_back(&self) -> F {
        self.parts.lock().stage.take_work().expect("a refused job has not run")
    }

    fn is_abandoned(&self) -> bool {
        let is_state = self.state.load(Ordering::Acquire) == ABANDONED;
        is_state || self.detached.load(Ordering::Acquire)
    }

    /// Stores the outcome, or drops it if nobody will take it.
    fn keep(&self, outcome: Result<T, JoinError>) {
        if let Err(error) = &outcome {
            self.trace.failed(error);
        }
        if self.is_abandoned() {
            // While the job runs still: what the drop waits for sees it as the job's wait.
            drop_quietly(outcome);
        } else {
            let needs_drop = std::mem::needs_drop::<T>() || outcome.is_err();
            self.kept.store(needs_drop, Ordering::Relaxed);
            self.parts.lock().stage = match outcome {
                Ok(value) => Stage::Value(value),
                Err(error) => Stage::Failed(Box::new(error)),
            };
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
        let work = self.parts.lock().stage.take_work().expect("a job runs once");
        match catch_unwind(AssertUnwindSafe(|| self.trace.run(work))) {
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

    fn expire(&self) -> Ended {
        self.discard();
        self.keep(Err(JoinError::Expired));
        Ended::Expired
    }

    fn complete(&self) {
        // Release: whoever sees the end sees the outcome. Acquire: the joiner is seen here.
        match self.state.swap(FINISHED, Ordering::AcqRel) {
            AWAITED => {
                let joiner = self.parts.lock().joiner.take();
                if let Some(joiner) = joiner {
                    joiner.tell(Verdict::Go);
                }
            }
            // The handle went between `keep` and here.
            before
                if self.kept.load(Ordering::Relaxed)
                    && (before == ABANDONED || self.detached.load(Ordering::Acquire)) =>
            {
                let outcome = self.parts.lock().stage.take_outcome();
                drop_quietly(outcome);
            }
            _ => {}
        }
    }

    fn discard(&self) {
        let work = self.parts.lock().stage.take_work();
        drop_quietly(work);
    }

    fn end(&self, fate: Fate) {
        self.keep(Err(match fate {
            Fate::Cancelled => JoinError::Cancelled,
            Fate::Aborted => JoinError::Closed,
            Fate::Expired => JoinError::Expired,
            Fate::Stalled { needed_bytes, ledger } => JoinError::Stalled {
                needed_bytes,
                free_bytes: ledger.free_bytes(),
                permits: ledger.permits,
                held_bytes: ledger.held_bytes,
            },
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

    fn is_finished(&self) -> bool {
        self.state.load(Ordering::Acquire) == FINISHED
    }
}

impl<F, T> Outcome<T> for Cell<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn take(&self) -> Option<Result<T, JoinError>> {
        if self.is_finished() { self.parts.lock().stage.take_outcome() } else { None }
    }

    fn tell_when_finished(&self, waiter: Arc<Waiter>) -> bool {
        let before = self.parts.lock().joiner.replace(waiter);
        drop(before);
        self.state.compare_exchange(OPEN, AWAITED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn tell_nobody(&self) {
        // On failure the worker was faster; it takes the joiner out itself.
        let _ = self.state.compare_exchange(AWAITED, OPEN, Ordering::AcqRel, Ordering::Acquire);
        // Not dropped under the lock: it may be the last to have a task's waker.
        let joiner = self.parts.lock().joiner.take();
        drop(joiner);
    }

    fn abandon(&self) {
        if !std::mem::needs_drop::<T>() {
            self.detached.store(true, Ordering::Release);
            if !self.is_finished() || !self.kept.load(Ordering::Relaxed) {
                return;
            }
            let outcome = self.parts.lock().stage.take_outcome();
            drop(outcome);
            return;
        }
        if self.state.swap(ABANDONED, Ordering::AcqRel) == FINISHED {
            let outcome = self.parts.lock().stage.take_outcome();
            drop(outcome);
        }
    }
}

/// Drops a value of the user's on a thread that must survive whatever the value does.
pub(crate) fn drop_quietly<T>(value: T) {
    let payload = catch_unwind(AssertUnwindSafe(|| drop(value))).err();
    // The payload is the user's as well. What its drop panics with is leaked: that may panic
    // with its like when it is dropped, and so on for ever.
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}
