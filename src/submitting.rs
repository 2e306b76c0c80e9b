//! A submission that a task waits for.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::answer::Ticket;
use crate::cost::Cost;
use crate::error::{Refused, SubmitError};
use crate::handle::Handle;
use crate::job::{Cell, Job, Outcome};
use crate::lane::{Entered, Lane, Patience};
use crate::lookout;
use crate::running;
use crate::trace::{self, Trace};
use crate::waiter::Waiter;

/// A submission on its way into its lane: [`Lane::submit_async`] makes one.
///
/// The job stands in line from that call on, whether or not this is polled. While nobody polls it
/// holds up nobody: the job gets its place, and runs, all the same.
///
/// # Cancelling
///
/// Dropping this before it has given the handle cancels the job: its closure is dropped, and its place
/// and its bytes are free, before the drop returns. A job that a worker has by then runs to its end
/// with its bytes, and its value is dropped.
#[must_use = "a submission that is dropped is cancelled"]
pub struct Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    lane: Lane,
    cost: Cost,
    stage: Stage<F, T>,
}

enum Stage<F, T> {
    Decided(Result<Handle<T>, SubmitError<F>>),
    Outside(Outside<F, T>),
    Over,
}

struct Outside<F, T> {
    job: Arc<Cell<F, T>>,
    ticket: Ticket,
    waiter: Arc<Waiter>,
}

impl<F, T> Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new(lane: Lane, cost: Cost, work: F) -> Self {
        // A job must not wait in any other way than its executor can see.
        if running::employer().is_some() {
            let submitted = lane.submit(cost, work);
            return Submitting { lane, cost, stage: Stage::Decided(submitted) };
        }
        let job = Arc::new(Cell::new(work, Trace::of_job(lane.its_name(), cost)));
        let queued: Arc<dyn Job> = Arc::<Cell<F, T>>::clone(&job);
        let entered = lane.begin_to_enter(Patience::Forever, cost, queued, Waiter::of_task);
        let stage = match entered {
            Ok(Entered::Inside(ticket)) => Stage::Decided(Ok(handle(&lane, job, ticket))),
            Ok(Entered::Outside { ticket, waiter, .. }) => {
                Stage::Outside(Outside { job, ticket, waiter })
            }
            Err(reason) => {
                trace::refused(lane.its_name(), cost, &reason);
                Stage::Decided(Err(SubmitError { reason, work: job.take_back() }))
            }
        };
        Submitting { lane, cost, stage }
    }

    fn poll_place(&self, waiter: &Waiter, context: &Context<'_>) -> Poll<Result<(), Refused>> {
        let shared = self.lane.shared();
        if shared.was_forked() {
            return Poll::Ready(Err(Refused::Forked));
        }
        let verdict = waiter.poll(context);
        if verdict.is_pending() {
            lookout::watch(&shared.gate);
        }
        verdict.map(|verdict| self.lane.place_given(verdict, self.cost))
    }
}

fn handle<F, T>(lane: &Lane, job: Arc<Cell<F, T>>, ticket: Ticket) -> Handle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let outcome: Arc<dyn Outcome<T>> = job;
    Handle::new(outcome, lane.shared().id(), ticket)
}

impl<F, T> Future for Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = Result<Handle<T>, SubmitError<F>>;

    /// # Panics
    ///
    /// After it has given its output.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let placed = match &this.stage {
            Stage::Outside(outside) => match this.poll_place(&outside.waiter, context) {
                Poll::Ready(placed) => placed,
                Poll::Pending => return Poll::Pending,
            },
            Stage::Decided(_) | Stage::Over => Ok(()),
        };
        Poll::Ready(match (std::mem::replace(&mut this.stage, Stage::Over), placed) {
            (Stage::Decided(decided), _) => decided,
            (Stage::Outside(Outside { job, ticket, .. }), Ok(())) => {
                Ok(handle(&this.lane, job, ticket))
            }
            (Stage::Outside(Outside { job, .. }), Err(reason)) => {
                trace::refused(this.lane.its_name(), this.cost, &reason);
                Err(SubmitError { reason, work: job.take_back() })
            }
            (Stage::Over, _) => panic!("polled after it has given its output"),
        })
    }
}

// The closure is never pinned: it is run, or given back, as a value.
impl<F, T> Unpin for Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
}

impl<F, T> Drop for Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn drop(&mut self) {
        match &self.stage {
            Stage::Decided(Ok(handle)) => {
                handle.cancel();
            }
            Stage::Outside(Outside { job, ticket, .. }) if !self.lane.shared().was_forked() => {
                // As a handle that cancels its job: one that runs already learns of it.
                job.ask_to_cancel();
                self.lane.shared().gate.change(|state| state.abandon(*ticket));
                job.abandon();
            }
            Stage::Outside(_) | Stage::Decided(Err(_)) | Stage::Over => {}
        }
    }
}

impl<F, T> fmt::Debug for Submitting<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitting").field("cost", &self.cost).finish_non_exhaustive()
    }
}
