//! What admitted jobs and permits hold: it is split, grows and returns.

use super::Admission;
use crate::accounts::AccountId;
use crate::answer::{Growth, LaneId, Slot};
use crate::bench::Holding;

impl<J, W> Admission<J, W> {
    /// A job in flight passes some of its bytes on to a permit, which is its lane's as well. Gives
    /// back the lane, or what the job holds if that is less; `None` where the job has ended.
    pub(crate) fn keep(&mut self, slot: Slot, bytes: u64) -> Option<Result<LaneId, u64>> {
        let holding = self.holding(slot)?;
        let Some(rest) = holding.bytes.checked_sub(bytes) else {
            return Some(Err(holding.bytes));
        };
        holding.bytes = rest;
        let at = LaneId { crew: slot.crew, lane: holding.lane };
        self.split_permit(Some(at), bytes);
        Some(Ok(at))
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

    /// A permit returns some of its bytes, and itself if `last`. `of`: whose it is, unless it was
    /// acquired.
    pub(crate) fn release(&mut self, of: Option<LaneId>, bytes: u64, last: bool) {
        if last {
            self.ledger.end_permit(bytes);
        } else {
            self.ledger.release(bytes);
        }
        self.moved();
        match of {
            Some(at) => {
                let (crew, accounts) = self.crew_and_accounts(at.crew);
                crew.hold_in_lane(at.lane, accounts, |account| account.release_permit(bytes, last));
                crew.retire(at.lane, accounts);
            }
            None => {
                let account = self.permits.account();
                self.accounts.change(account, |account| account.release_permit(bytes, last));
            }
        }
        self.settle();
    }

    /// So many of the bytes that a line holds are held by one more permit.
    fn split_permit(&mut self, of: Option<LaneId>, bytes: u64) {
        self.ledger.split_permit();
        self.moved();
        let account = self.account_of(of);
        self.accounts.change(account, |account| account.split_permit(bytes));
    }

    /// One permit becomes two; the bytes are the same.
    pub(crate) fn divide_permit(&mut self, of: Option<LaneId>) {
        self.split_permit(of, 0);
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
