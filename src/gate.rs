//! The lock around the admission state, and what has to happen outside of it.

use std::sync::Arc;

use crate::admission::{Admission, Effects, Gone};
use crate::job::Job;
use crate::sync::Mutex;
use crate::waiter::Waiter;

pub(crate) type State = Admission<Arc<dyn Job>, Arc<Waiter>>;

/// One per budget. Every change to who waits, runs or holds bytes is made under its lock, and
/// nothing of the user's is run, woken or dropped there (I7).
pub(crate) struct Gate {
    state: Mutex<State>,
}

impl Gate {
    pub(crate) fn new(capacity_bytes: u64, reserve_bytes: u64) -> Self {
        Gate { state: Mutex::new(Admission::new(capacity_bytes, reserve_bytes)) }
    }

    /// Makes a change, then wakes and ends whom it concerns.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        if state.has_effects() {
            let effects = state.take_effects();
            drop(state);
            self.carry_out(effects);
        }
        result
    }

    /// Looks without changing anything.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.state.lock())
    }

    fn carry_out(&self, effects: Effects<Arc<dyn Job>, Arc<Waiter>>) {
        for (waiter, verdict) in effects.told {
            waiter.tell(verdict);
        }
        for Gone { job, fate, place } in effects.gone {
            job.discard();
            self.change(|state| state.left(place));
            job.end(fate);
        }
    }
}
