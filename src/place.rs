//! A place in a lane, taken before its job comes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::{Offer, Ticket};
use crate::cost::Cost;
use crate::error::{Refused, SubmitError};
use crate::handle::Handle;
use crate::job::{Cell, Job, Outcome};
use crate::lane::{Lane, as_refused};
use crate::sys::clock::Moment;
use crate::trace::{self, Trace};

/// A place in a lane for a job that is still to come: [`Lane::try_reserve`] takes one.
///
/// It counts as one waiting job, with the input that was declared, until its job is submitted or it is
/// dropped. The job then stands where it would if it had been submitted when the place was taken, before
/// all that came later; until then it holds up nobody, and the [time to start](Lane::start_within) goes on.
/// Closing or draining the executor does not wait for places: their jobs are refused.
///
/// # Examples
///
/// A body of unknown length, which is counted as it arrives:
///
/// ```
/// use admit::{Budget, Cost, Executor, KIB, MIB};
///
/// let budget = Budget::new(64 * MIB, 0)?;
/// let executor = Executor::builder().workers(1).budget(budget).waiting_bytes(8 * MIB).build()?;
/// let mut place = executor.default_lane().try_reserve(Cost::new(MIB))?;
/// let mut body = Vec::new();
/// for chunk in [&[1_u8; 1000][..], &[2; 500]] {
///     place.declare(Cost::new(MIB).input((body.len() + chunk.len()) as u64))?;
///     body.extend_from_slice(chunk);
/// }
/// assert_eq!(executor.stats().waiting_input_bytes, 1500);
/// let handle = place.submit(move || body.iter().map(|byte| u64::from(*byte)).sum::<u64>())?;
/// assert_eq!(handle.join()?, 2000);
/// assert_eq!(executor.stats().waiting_input_bytes, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a place that is dropped is free for others"]
pub struct Place {
    lane: Lane,
    cost: Cost,
    since: Moment,
    expires: Moment,
    /// `None` once the job has it.
    seq: Option<u64>,
}

impl Place {
    pub(crate) fn reserve(lane: &Lane, cost: Cost) -> Result<Place, Refused> {
        if lane.shared().was_forked() {
            return Err(Refused::Forked);
        }
        let (since, expires) = lane.times();
        let gate = &lane.shared().gate;
        let seq =
            gate.change_lane(Some(lane.id()), |state| state.reserve(lane.id(), cost, expires));
        let seq = seq.map_err(|refusal| as_refused(refusal, cost));
        let seq = seq.inspect_err(|reason| trace::refused(lane.its_name(), cost, reason))?;
        Ok(Place { lane: lane.clone(), cost, since, expires, seq: Some(seq) })
    }

    /// What was declared last.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Declares another cost: more input, to be read next; less, when it is known; other working bytes,
    /// which mostly depend on what the input says. Never waits.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if there is no room for more input now; [`Refused::InputAbove`] and
    /// [`Refused::NeverFits`] if there never is; [`Refused::Closed`], [`Refused::Forked`]. The place is
    /// as before then.
    pub fn declare(&mut self, cost: Cost) -> Result<(), Refused> {
        let shared = self.lane.shared();
        if shared.was_forked() {
            return Err(Refused::Forked);
        }
        let (place, before) = (self.ticket(), self.cost);
        let changed = shared
            .gate
            .change_lane(Some(self.lane.id()), |state| state.change_reserved(place, before, cost));
        changed.map_err(|refusal| as_refused(refusal, cost))?;
        self.cost = cost;
        Ok(())
    }

    /// Gives the job until `time` from now to start, instead of what is left of the
    /// [lane's time](Lane::start_within): when a body has been long on its way, and its sender waits from
    /// here on.
    pub fn start_within(&mut self, time: Duration) {
        self.expires = Moment::now().after(time);
    }

    /// Submits the job in its place. Never waits.
    ///
    /// # Errors
    ///
    /// The closure comes back, and the place is free for others: [`Refused::Expired`] if its time to
    /// start is over; [`Refused::NeverFits`] if the budget has shrunk; [`Refused::Closed`],
    /// [`Refused::Forked`].
    pub fn submit<F, T>(mut self, work: F) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = self.lane.shared();
        if shared.was_forked() {
            return Err(SubmitError { reason: Refused::Forked, work });
        }
        let job = Arc::new(Cell::new(work, Trace::of_job(self.lane.its_name(), self.cost)));
        let queued: Arc<dyn Job> = Arc::<Cell<F, T>>::clone(&job);
        let (place, cost, since, expires) = (self.ticket(), self.cost, self.since, self.expires);
        let offer = shared.gate.change_lane(Some(self.lane.id()), |state| {
            state.enter_reserved(place, cost, since, expires, queued)
        });
        let id = shared.id();
        self.seq = None;
        match offer {
            Offer::Refused(refusal) => {
                let reason = as_refused(refusal, cost);
                trace::refused(self.lane.its_name(), cost, &reason);
                Err(SubmitError { reason, work: job.take_back() })
            }
            Offer::Accepted(ticket) | Offer::Outside(ticket) => {
                let outcome: Arc<dyn Outcome<T>> = job;
                Ok(Handle::new(outcome, id, ticket))
            }
        }
    }

    fn ticket(&self) -> Ticket {
        Ticket {
            at: self.lane.id(),
            seq: self.seq.expect("only submitting, which consumes it, takes it"),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.seq.is_some() && !self.lane.shared().was_forked() {
            let at = self.lane.id();
            self.lane.shared().gate.change(|state| state.give_up_reserved(at, self.cost));
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("cost", &self.cost).finish_non_exhaustive()
    }
}
