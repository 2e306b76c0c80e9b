//! Permits that are held, and the line of those who acquire them directly, not through a job.

use std::collections::BTreeMap;

use crate::accounts::{AccountId, Accounts, Terms, Turn};
use crate::answer::LaneId;
use crate::line::Line;
use crate::overtaking::Overtaking;
use crate::queue::Passed;
use crate::sys::clock::Moment;

#[derive(Debug)]
struct Acquirer<W> {
    bytes: u64,
    since: Moment,
    passed: Passed,
    waiter: Option<W>,
}

/// A permit that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldPermit {
    /// Whose job kept it. `None`: it was acquired.
    pub(crate) of: Option<LaneId>,
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
}

#[derive(Debug)]
pub(crate) struct Permits<W> {
    /// By number. One that was acquired has that of its request.
    held: BTreeMap<u64, HeldPermit>,
    /// Acquirers have one share, as a lane does of which nothing was said.
    account: AccountId,
    turn: Option<Turn>,
    line: Line<Acquirer<W>>,
}

impl<W> Permits<W> {
    pub(crate) fn new(accounts: &mut Accounts) -> Self {
        let account = accounts.open(None, Terms::PLAIN);
        Permits { held: BTreeMap::new(), account, turn: None, line: Line::new() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    pub(crate) fn account(&self) -> AccountId {
        self.account
    }

    /// The turn and the bytes of the caller that has waited longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Turn, u64)> {
        let turn = self.turn?;
        self.line.front().map(|(_, acquirer)| (turn, acquirer.bytes))
    }

    /// Whether the first may be passed once more.
    pub(crate) fn may_pass_first(&self, overtaking: &Overtaking, now: Moment) -> bool {
        let first = self.line.front();
        first.is_some_and(|(_, acquirer)| acquirer.passed.may_be_once_more(overtaking, now))
    }

    pub(crate) fn pass_first(&mut self, now: Moment) {
        if let Some((seq, _)) = self.line.front() {
            self.line.get_mut(seq).expect("it is the front").passed.once_more(now);
        }
    }

    fn note_first(&mut self, accounts: &mut Accounts) {
        let first = self.line.front().map(|(seq, _)| seq);
        if first != self.turn.map(|turn| turn.seq) {
            let begins = self.turn.is_none();
            self.turn = first.map(|seq| accounts.turn(self.account, seq, begins));
        }
    }

    pub(crate) fn enter(&mut self, seq: u64, bytes: u64, accounts: &mut Accounts) {
        let (since, passed) = (accounts.now(), Passed::default());
        self.line.push(seq, Acquirer { bytes, since, passed, waiter: None });
        self.note_first(accounts);
    }

    /// Whether the request that came last still waits, given that `seq` is its number.
    pub(crate) fn is_last(&self, seq: u64) -> bool {
        self.line.last_seq() == Some(seq)
    }

    pub(crate) fn wait(&mut self, seq: u64, waiter: W) {
        self.line.get_mut(seq).expect("it was just put there").waiter = Some(waiter);
    }

    pub(crate) fn leave(&mut self, seq: u64, accounts: &mut Accounts) -> bool {
        let left = self.line.remove(seq).is_some();
        self.note_first(accounts);
        left
    }

    /// The first in line has its permit. Gives back whom to tell.
    pub(crate) fn grant_first(&mut self, accounts: &mut Accounts) -> Option<W> {
        let (number, acquirer) = self.line.pop()?;
        let held = HeldPermit { of: None, bytes: acquirer.bytes, since: accounts.now() };
        self.held.insert(number, held);
        accounts.change(self.account, |account| {
            account.held_bytes += acquirer.bytes;
            account.split_permit(acquirer.bytes);
        });
        self.note_first(accounts);
        acquirer.waiter
    }

    /// Those that are held.
    pub(crate) fn held(&self) -> impl Iterator<Item = &HeldPermit> {
        self.held.values()
    }

    pub(crate) fn held_mut(&mut self, number: u64) -> &mut HeldPermit {
        self.held.get_mut(&number).expect("its owner names it")
    }

    /// Bytes that somebody held are a permit's from now on.
    pub(crate) fn hold(&mut self, number: u64, held: HeldPermit) {
        self.held.insert(number, held);
    }

    /// A permit is dropped.
    pub(crate) fn end(&mut self, number: u64) -> HeldPermit {
        self.held.remove(&number).expect("I3: its owner drops it once")
    }

    /// Since when the first has waited.
    pub(crate) fn first_since(&self) -> Option<Moment> {
        self.line.front().map(|(_, acquirer)| acquirer.since)
    }

    /// Takes the first out of the line. Gives back whom to tell.
    pub(crate) fn end_first(&mut self, accounts: &mut Accounts) -> Option<W> {
        let (_, acquirer) = self.line.pop()?;
        self.note_first(accounts);
        acquirer.waiter
    }

    /// Takes out of the line everybody who waits for more than can ever be there.
    pub(crate) fn evict(
        &mut self,
        admissible_bytes: u64,
        accounts: &mut Accounts,
    ) -> impl Iterator<Item = W> {
        let gone = self.line.remove_where(|acquirer| acquirer.bytes > admissible_bytes);
        self.note_first(accounts);
        gone.into_iter().filter_map(|acquirer| acquirer.waiter)
    }
}
