//! A job's way into its lane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Lane;
use crate::answer::{Offer, Refusal, Ticket};
use crate::cost::Cost;
use crate::effects::Verdict;
use crate::error::Refused;
use crate::job::Job;
use crate::waiter::Waiter;
use crate::waits::{self, Target};

/// How long a thread waits to be told together with others that it has its place. It does not stay awake
/// for that: those whom it waits for need the processor.
const UNTIL_TOLD_AT_ONCE: Duration = Duration::from_millis(1);

/// How long a submission may wait for its place.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    None,
    Until(Instant),
    Forever,
}

/// Where a submission stands.
pub(crate) enum Entered {
    Inside(Ticket),
    /// It waits for a place, and the waiter is told.
    Outside {
        ticket: Ticket,
        waiter: Arc<Waiter>,
        is_told_at_once: bool,
    },
}

impl Lane {
    /// Gets the job a place in the lane, or comes back with the reason why not.
    pub(crate) fn enter(
        &self,
        patience: Patience,
        cost: Cost,
        job: Arc<dyn Job>,
    ) -> Result<Ticket, Refused> {
        match self.begin_to_enter(patience, cost, job, Waiter::new)? {
            Entered::Inside(ticket) => Ok(ticket),
            Entered::Outside { ticket, waiter, is_told_at_once } => {
                self.wait_for_place(patience, cost, ticket, &waiter, is_told_at_once)
            }
        }
    }

    /// Gets the job a place in the lane, or in the line of those that wait for one.
    pub(crate) fn begin_to_enter(
        &self,
        patience: Patience,
        cost: Cost,
        job: Arc<dyn Job>,
        new_waiter: impl FnOnce() -> Waiter,
    ) -> Result<Entered, Refused> {
        if self.shared.was_forked() {
            return Err(Refused::Forked);
        }
        let (since, expires) = self.times();
        let job = match self.shared.gate.accept(self.id(), cost, since, expires, job) {
            Ok(ticket) => return Ok(Entered::Inside(ticket)),
            Err(job) => job,
        };
        let entered = self.shared.gate.change_lane(Some(self.id()), |state| {
            let ticket = match state.offer(self.id(), cost, since, expires, job) {
                Offer::Accepted(ticket) => return Ok(Entered::Inside(ticket)),
                Offer::Refused(refusal) => return Err(refusal),
                Offer::Outside(ticket) => ticket,
            };
            match patience {
                Patience::None => Err(state.withdraw(ticket).expect("it stands outside")),
                Patience::Forever if self.shared.id().is_on_callers_budget() => {
                    Err(state.withdraw_from_own_worker(ticket).expect("it stands outside"))
                }
                Patience::Forever | Patience::Until(_) => {
                    let waiter = Arc::new(new_waiter());
                    // A task does not look itself.
                    let at_once = waiter.is_of_task();
                    let is_told_at_once = state.wait(ticket, Arc::clone(&waiter), at_once);
                    Ok(Entered::Outside { ticket, waiter, is_told_at_once })
                }
            }
        });
        entered.map_err(|refusal| as_refused(refusal, cost))
    }

    pub(crate) fn wait_for_place(
        &self,
        patience: Patience,
        cost: Cost,
        ticket: Ticket,
        waiter: &Waiter,
        is_told_at_once: bool,
    ) -> Result<Ticket, Refused> {
        let deadline = match patience {
            Patience::Until(deadline) => Some(deadline),
            Patience::None | Patience::Forever => None,
        };
        let gate = &self.shared.gate;
        let target = Target::Budget(self.shared.id().place.gate);
        let waiting = waits::begin_until(deadline, target);
        let is_circle = waiting.is_err();
        let wait = || {
            if !is_told_at_once {
                let a_while = Instant::now() + UNTIL_TOLD_AT_ONCE;
                let verdict = waiter.sleep(Some(deadline.map_or(a_while, |end| end.min(a_while))));
                if verdict.is_some() || deadline.is_some_and(|end| end <= a_while) {
                    return verdict;
                }
                gate.change(|state| state.tell_at_once(ticket));
            }
            gate.wait(waiter, deadline)
        };
        let mut verdict = if is_circle { None } else { wait() };
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
        self.place_given(verdict.expect("waited for"), cost).map(|()| ticket)
    }

    /// What a submission that stood outside was told.
    pub(crate) fn place_given(&self, verdict: Verdict, cost: Cost) -> Result<(), Refused> {
        match verdict {
            Verdict::Go => Ok(()),
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

pub(crate) fn as_refused(refusal: Refusal, cost: Cost) -> Refused {
    match refusal {
        Refusal::Full(limit) => Refused::Full(limit),
        Refusal::OwnWorker => Refused::OwnWorker,
        Refusal::NeverFits { admissible_bytes } => Refused::NeverFits { cost, admissible_bytes },
        Refusal::InputAbove { limit_bytes } => {
            Refused::InputAbove { input_bytes: cost.input_bytes(), limit_bytes }
        }
        Refusal::Expired => Refused::Expired,
        Refusal::Closed => Refused::Closed,
    }
}
