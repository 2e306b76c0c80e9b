//! What admitted jobs and permits hold: it is split, grows and returns.

use super::Admission;
use crate::accounts::{Account, AccountId};
use crate::answer::{Growth, LaneId, Slot};
use crate::bench::Holding;
use crate::permits::HeldPermit;

impl<J, W> Admission<J, W> {
    /// A job in flight passes some of its bytes on to a permit, which is its lane's as well. Gives
    /// back the permit's number, or what the job holds if that is less; `None` where the job has
    /// ended.
    pub(crate) fn keep(&mut self, slot: Slot, bytes: u64) -> Option<Result<u64, u64>> {
        let holding = self.holding(slot)?;
        let Some(rest) = holding.bytes.checked_sub(bytes) else {
            return Some(Err(holding.bytes));
        };
        holding.bytes = rest;
        let at = LaneId { crew: slot.crew, lane: holding.lane };
        let since = self.accounts.now();
        let number = self.add_permit(HeldPermit { of: Some(at), bytes, since });
        // Of what the lane holds, the permit now holds a part.
        self.accounts.change(self.account_of(Some(at)), |account| account.split_permit(bytes));
        Some(Ok(number))
    }

    /// What a job in flight holds.
    pub(crate) fn held_by(&mut self, slot: Slot) -> Option<u64> {
        self.holding(slot).map(|holding| holding.bytes)
    }

    fn holding(&mut self, slot: Slot) -> Option<&mut Holding> {
        self.crews[slot.crew].as_mut()?.bench_mut().holding_mut(slot.slot, slot.seq)
    }

    /// A job in flight wants more. It gets it now or not at all: jobs that all hold some and all
    /// waited for more would wait for ever. Like any other claim it is behind those who wait, and
    /// passes them where overtaking, or what is guaranteed to its lane, allows it.
    pub(crate) fn grow(&mut self, slot: Slot, bytes: u64) -> Growth {
        let Some(Holding { lane, bytes: held_bytes, .. }) = self.holding(slot).copied() else {
            return Growth::Ended;
        };
        let at = LaneId { crew: slot.crew, lane };
        let admissible_bytes = self.largest_bytes_of(at);
        if held_bytes.checked_add(bytes).is_none_or(|bytes| bytes > admissible_bytes) {
            return Growth::NeverFits { held_bytes, admissible_bytes };
        }
        let account = self.crew(at.crew).lane(lane).account;
        if !self.may_grow(account, bytes) {
            return Growth::NotNow { free_bytes: self.ledger.free_bytes() };
        }
        self.ledger.grow_job(bytes);
        self.moved();
        self.holding(slot).expect("it was found above").bytes += bytes;
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        crew.hold_in_lane(lane, accounts, |account| account.held_bytes += bytes);
        Growth::Granted
    }

    /// A permit returns some of its bytes.
    pub(crate) fn shrink_permit(&mut self, number: u64, bytes: u64) {
        let held = self.permits.held_mut(number);
        held.bytes -= bytes;
        let of = held.of;
        self.ledger.release(bytes);
        self.release(of, |account| account.release_permit(bytes));
    }

    /// A permit returns what it holds, and is gone.
    pub(crate) fn end_permit(&mut self, number: u64) {
        let HeldPermit { of, bytes, .. } = self.permits.end(number);
        self.ledger.end_permit(bytes);
        self.release(of, |account| account.end_permit(bytes));
    }

    fn release(&mut self, of: Option<LaneId>, change: impl FnOnce(&mut Account)) {
        self.moved();
        match of {
            Some(at) => {
                let (crew, accounts) = self.crew_and_accounts(at.crew);
                crew.hold_in_lane(at.lane, accounts, change);
                crew.retire(at.lane, accounts);
            }
            None => self.accounts.change(self.permits.account(), change),
        }
        self.settle();
    }

    /// One permit becomes two: so many of its bytes are those of a new one. Gives back the new
    /// one's number.
    pub(crate) fn split_permit(&mut self, number: u64, bytes: u64) -> u64 {
        let held = self.permits.held_mut(number);
        held.bytes -= bytes;
        let part = HeldPermit { bytes, ..*held };
        self.accounts.change(self.account_of(part.of), |account| account.split_permit(0));
        self.add_permit(part)
    }

    fn add_permit(&mut self, held: HeldPermit) -> u64 {
        let number = self.take_seq();
        self.permits.hold(number, held);
        self.ledger.split_permit();
        self.moved();
        number
    }

    fn account_of(&self, of: Option<LaneId>) -> AccountId {
        match of {
            Some(at) => self.crew(at.crew).lane(at.lane).account,
            None => self.permits.account(),
        }
    }

    pub(super) fn moved(&mut self) {
        self.moved = self.accounts.now();
    }
}
