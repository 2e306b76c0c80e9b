//! What a budget is like changes.

use super::Admission;
use crate::accounts::Terms;
use crate::effects::Verdict;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;

impl<J, W> Admission<J, W> {
    /// Sets capacity and reserve. Bytes above a shrunk capacity stay held and only block new
    /// admissions; whoever waits for more than can ever be there is told now.
    pub(crate) fn resize(&mut self, capacity_bytes: u64, reserve_bytes: u64) {
        self.ledger.capacity_bytes = capacity_bytes;
        self.ledger.reserve_bytes = reserve_bytes;
        self.share_out();
        self.evict_what_never_fits();
        self.settle();
    }

    /// Sets what is done with jobs above the admissible bytes. Who waits and would have been
    /// refused now is.
    pub(crate) fn set_oversize(&mut self, oversize: Oversize, is_capacity_hard: bool) {
        self.oversize = oversize;
        self.is_capacity_hard = is_capacity_hard;
        self.evict_what_never_fits();
        self.settle();
    }

    pub(crate) fn set_overtaking(&mut self, overtaking: Overtaking) {
        self.overtaking = overtaking;
        self.settle();
    }

    /// The admissible bytes or somebody's number of workers have changed.
    pub(super) fn share_out(&mut self) {
        let admissible_bytes = self.ledger.admissible_bytes();
        for (id, crew) in self.crews.iter().enumerate() {
            let Some(crew) = crew else { continue };
            let workers = crew.bench().workers().max(1) as u64;
            self.accounts.set_worker_bytes(id, admissible_bytes / workers);
        }
    }

    /// A wait that cannot end is a hang (I9), so a need above what can ever be had ends here.
    pub(super) fn evict_what_never_fits(&mut self) {
        let largest_bytes = self.largest_bytes();
        let evicted = self.permits.evict(largest_bytes(&Terms::PLAIN), &mut self.accounts);
        self.effects.told.extend(evicted.map(|waiter| (waiter, Verdict::NeverFits)));
        for id in 0..self.crews.len() {
            let Some(crew) = self.crews[id].as_mut() else { continue };
            crew.evict(id, &largest_bytes, &mut self.effects, &mut self.accounts);
            self.let_in_everywhere(id);
        }
    }
}
