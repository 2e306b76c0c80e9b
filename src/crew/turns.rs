//! Which lane's head is next.

use super::Crew;
use crate::accounts::{Account, AccountId, Accounts, Turn};
use crate::ledger::Ledger;
use crate::overtaking::Overtaking;

/// The lane that is there always.
const DEFAULT_LANE: usize = 0;
/// How many lanes, and how many jobs in each, are looked at for one that fits. A bound on the work
/// that is done under the lock.
pub(crate) const WINDOW: usize = 32;

impl<J, W> Crew<J, W> {
    /// To be called when a lane's head, or what the lane holds, may have changed.
    #[inline]
    pub(super) fn note_head(&mut self, lane: usize, accounts: &mut Accounts) {
        let queue = &mut self.lanes[lane];
        let account = accounts.get(queue.account);
        let next = queue.next(accounts.now());
        let wants = next.is_some();
        let head = next.filter(|(_, entry)| account.has_room(entry.bytes)).map(|(seq, _)| seq);
        let begins = !std::mem::replace(&mut queue.wants, wants);
        if head == queue.turn.map(|turn| turn.seq) {
            return;
        }
        let before = queue.turn;
        queue.turn = head.map(|seq| accounts.turn(queue.account, seq, begins));
        let now = queue.turn;
        if self.lanes.len() > 1 {
            if let Some(turn) = before {
                self.turns.remove(&(turn, lane));
            }
            if let Some(turn) = now {
                self.turns.insert((turn, lane));
            }
        }
    }

    /// Changes what a lane holds. Its head has to be noted after that, unless the lane holds less
    /// than before and its head has a turn already.
    #[inline]
    pub(super) fn change_account(
        &mut self,
        lane: usize,
        accounts: &mut Accounts,
        change: impl FnOnce(&mut Account),
    ) {
        let id = self.lanes[lane].account;
        if self.guaranteed.is_empty() {
            accounts.change(id, change);
        } else {
            self.promised_workers -= accounts.get(id).promised_workers();
            accounts.change(id, change);
            self.promised_workers += accounts.get(id).promised_workers();
        }
    }

    /// The lane whose head is first of those that a worker is free for.
    #[inline]
    pub(crate) fn first(&self, accounts: &Accounts) -> Option<(Turn, usize)> {
        let free = self.bench.free();
        if free > self.promised_workers {
            match self.lanes.len() {
                1 => self.lanes[DEFAULT_LANE].turn.map(|turn| (turn, DEFAULT_LANE)),
                _ => self.turns.first().copied(),
            }
        } else if free > 0 {
            self.first_guaranteed(accounts, |account, _| account.promised_workers() > 0)
        } else {
            None
        }
    }

    /// The lane whose head is first of those that take nothing but what is guaranteed to them, or
    /// workers that are free for anybody. (In a budget that was shrunk even that may not be free.)
    /// `first`: whose head a worker has to be left for.
    pub(crate) fn first_within_guarantee(
        &self,
        first: Option<AccountId>,
        accounts: &Accounts,
        ledger: &Ledger,
    ) -> Option<(Turn, usize)> {
        self.first_guaranteed(accounts, |account, bytes| {
            let has_bytes = bytes <= account.promised_bytes() && ledger.fits(bytes);
            let leaves_worker =
                first.is_none_or(|first| self.has_free_worker_beside(account, accounts.get(first)));
            self.has_free_worker_for(account) && has_bytes && leaves_worker
        })
    }

    fn first_guaranteed(
        &self,
        accounts: &Accounts,
        may_go: impl Fn(&Account, u64) -> bool,
    ) -> Option<(Turn, usize)> {
        let lanes = self.guaranteed.iter().map(|lane| (*lane, &self.lanes[*lane]));
        let turns = lanes.filter_map(|(at, lane)| {
            let (turn, (_, head)) = (lane.turn?, lane.head()?);
            may_go(accounts.get(lane.account), head.bytes).then_some((turn, at))
        });
        turns.min()
    }

    /// The first job that fits, if those before it in its lane may be passed: its lane's turn, the
    /// lane, and the job's number and bytes.
    pub(crate) fn first_that_fits(
        &self,
        accounts: &Accounts,
        overtaking: &Overtaking,
        fits: impl Fn(AccountId, u64) -> bool,
    ) -> Option<(Turn, usize, u64, u64)> {
        if self.bench.free() <= self.promised_workers {
            return None;
        }
        let only = match self.lanes.len() {
            1 => self.lanes[DEFAULT_LANE].turn.map(|turn| (turn, DEFAULT_LANE)),
            _ => None,
        };
        only.into_iter().chain(self.turns.iter().copied()).take(WINDOW).find_map(|(turn, at)| {
            let lane = &self.lanes[at];
            let (seq, head) = lane.head()?;
            if fits(lane.account, head.bytes) {
                return Some((turn, at, seq, head.bytes));
            }
            if !lane.may_pass(seq, overtaking, accounts.now()) {
                return None;
            }
            let account = accounts.get(lane.account);
            let mut behind = lane.behind_head().take(WINDOW - 1);
            let (seq, entry) = behind.find(|(_, entry)| {
                account.has_room(entry.bytes) && fits(lane.account, entry.bytes)
            })?;
            Some((turn, at, seq, entry.bytes))
        })
    }

    /// Jobs may have left from anywhere in any lane.
    pub(super) fn note_heads(&mut self, accounts: &mut Accounts) {
        for lane in self.keys() {
            self.lanes[lane].forget_passes_of_gone();
            self.note_head(lane, accounts);
        }
    }
}
