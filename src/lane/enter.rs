//! A job's way into its lane.

use std::sync::Arc;
use std::time::Instant;

use super::Lane;
use crate::answer::{Offer, Refusal, Ticket};
use crate::cost::Cost;
use crate::effects::Verdict;
use crate::error::Refused;
use crate::job::Job;
use crate::sys::clock::Moment;
use crate::waiter::Waiter;
use crate::waits::{self, Target};

/// How long a submission may wait for its place.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    None,
    Until(Instant),
    Forever,
}

impl Lane {
    /// Gets the job a place in the lane, or comes back with the reason why not.
    pub(crate) fn enter(
        &self,
        patience: Patience,
        cost: Cost,
        job: Arc<dyn Job>,
    ) -> Result<Ticket, Refused> {
        if self.shared.was_forked() {
            return Err(Refused::Forked);
        }
        let since = Moment::now();
        let expires = self.start_within.map_or(Moment::NEVER, |time| since.after(time));
        let job = match self.shared.gate.accept(self.id(), cost, since, expires, job) {
            Ok(ticket) => return Ok(ticket),
            Err(job) => job,
        };
        let mut waiter = None;
        let offer = self.shared.gate.change_lane(Some(self.id()), |state| {
            let offer = state.offer(self.id(), cost, since, expires, job);
            let Offer::Outside(ticket) = offer else { return Ok(offer) };
            match patience {
                Patience::None => Err(state.withdraw(ticket).expect("it stands outside")),
                Patience::Forever if self.shared.id().is_on_callers_budget() => {
                    Err(state.withdraw_from_own_worker(ticket).expect("it stands outside"))
                }
                Patience::Forever | Patience::Until(_) => {
                    let told = waiter.insert(Arc::new(Waiter::new()));
                    state.wait(ticket, Arc::clone(told));
                    Ok(offer)
                }
            }
        });
        match offer.map_err(|refusal| as_refused(refusal, cost))? {
            Offer::Accepted(ticket) => Ok(ticket),
            Offer::Refused(refusal) => Err(as_refused(refusal, cost)),
            Offer::Outside(ticket) => {
                let waiter = waiter.expect("it was made for this");
                self.wait_for_place(patience, cost, ticket, &waiter)
            }
        }
    }

    fn wait_for_place(
        &self,
        patience: Patience,
        cost: Cost,
        ticket: Ticket,
        waiter: &Waiter,
    ) -> Result<Ticket, Refused> {
        let deadline = match patience {
            Patience::Until(deadline) => Some(deadline),
            Patience::None | Patience::Forever => None,
        };
        let gate = &self.shared.gate;
        let target = Target::Budget(self.shared.id().place.gate);
        let waiting = waits::begin_until(deadline, target);
        let is_circle = waiting.is_err();
        let mut verdict = if is_circle { None } else { gate.wait(waiter, deadline) };
        drop(waiting);
        if verdict.is_none() {
            let withdrawn = gate.change(|state| match is_circle {
                true => state.withdraw_from_own_worker(ticket),
                false => state.withdraw(ticket),
            });
            match withdrawn {
                Some(_) if is_circle => return Err(Refused::Circle),
                Some(refusal) => return Err(as_refused(refusal, cost)),
                None => {}
            }
            // It was decided just before, and the verdict is on its way.
            while verdict.is_none() {
                verdict = waiter.wait(None);
            }
        }
        match verdict.expect("waited for") {
            Verdict::Go => Ok(ticket),
            Verdict::Closed => Err(Refused::Closed),
            Verdict::Expired => Err(Refused::Expired),
            Verdict::Stalled => {
                let ledger = self.shared.gate.look(|state| *state.ledger());
                let (free_bytes, permits) = (ledger.free_bytes(), ledger.permits);
                Err(Refused::Stalled { cost, free_bytes, permits, held_bytes: ledger.held_bytes })
            }
            Verdict::NeverFits => {
                let id = self.id();
                let admissible_bytes = self.shared.gate.look(|state| state.largest_bytes_of(id));
                Err(Refused::NeverFits { cost, admissible_bytes })
            }
        }
    }
}

fn as_refused(refusal: Refusal, cost: Cost) -> Refused {
    match refusal {
        Refusal::Full(limit) => Refused::Full(limit),
        Refusal::OwnWorker => Refused::OwnWorker,
        Refusal::NeverFits { admissible_bytes } => Refused::NeverFits { cost, admissible_bytes },
        Refusal::Expired => Refused::Expired,
        Refusal::Closed => Refused::Closed,
    }
}
