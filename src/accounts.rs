//! What each line on a budget may have, what it holds, and what it has had in proportion to its
//! share. A line is a lane of an executor, or that of the callers who acquire permits directly.

use slab::Slab;

use crate::sys::clock::Moment;

/// The most that a lane's share may be.
pub(crate) const MOST_SHARE: u32 = 1000;

/// How long what a lane holds is taken to stay, when the turn of its next job is set. With 0, one
/// of two lanes that begin at the same time would get everything before it has had anything.
const OUTLOOK_NANOS: u64 = 100_000_000;

/// What a lane was promised, and what it may have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// 1 to [`MOST_SHARE`].
    pub(crate) share: u32,
    pub(crate) guaranteed_bytes: u64,
    pub(crate) guaranteed_workers: usize,
    pub(crate) most_bytes: u64,
    pub(crate) most_workers: usize,
    pub(crate) most_job_bytes: u64,
}

impl Terms {
    /// The terms of a lane of which nothing was said.
    pub(crate) const PLAIN: Terms = Terms {
        share: 1,
        guaranteed_bytes: 0,
        guaranteed_workers: 0,
        most_bytes: u64::MAX,
        most_workers: usize::MAX,
        most_job_bytes: u64::MAX,
    };

    pub(crate) fn has_guarantee(&self) -> bool {
        self.guaranteed_bytes > 0 || self.guaranteed_workers > 0
    }

    /// The largest job that can ever be admitted, of the admissible bytes of a budget and those
    /// that are guaranteed to any of its lanes.
    pub(crate) fn largest_bytes(&self, admissible_bytes: u64, guaranteed_bytes: u64) -> u64 {
        let others = guaranteed_bytes - self.guaranteed_bytes;
        let own = self.guaranteed_bytes.min(admissible_bytes);
        own.max(admissible_bytes.saturating_sub(others)).min(self.ceiling_bytes())
    }

    /// The most that one job may ever hold.
    pub(crate) fn ceiling_bytes(&self) -> u64 {
        self.most_bytes.min(self.most_job_bytes)
    }
}

/// When a line's head may go, in relation to the heads of other lines: the one that has had least
/// in proportion to its share first, and of equal ones the one that came first.
///
/// A head keeps its turn until it goes or leaves. So one that is first and does not fit stays
/// first, whatever happens in other lines meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// The bits of a number that is not negative, which are in the order of the numbers.
    use_then: u64,
    pub(crate) seq: u64,
}

/// One line's account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) terms: Terms,
    pub(crate) running_jobs: usize,
    pub(crate) held_bytes: u64,
    /// Permits that were acquired in this line, or that its jobs kept.
    pub(crate) permits: u64,
    /// Their bytes. They are among those held.
    pub(crate) permit_bytes: u64,
    /// Byte-nanoseconds, divided by the share. In 53 bits there is room for a second's use of a
    /// kibibyte beside that of a tebibyte over a month.
    used: f64,
    /// The same, times the share, of what it has really had: a line that begins to wait is taken to
    /// have used more.
    received: f64,
    since: Moment,
    /// Whether it is among those that hold something.
    is_listed: bool,
    /// The executor that the line is of, if it is of one.
    crew: Option<usize>,
}

/// Names an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountId(usize);

/// The accounts of all lines on one budget, and the clock by which they are kept.
///
/// Use is what is held, over time. What is held is the larger of two numbers: the bytes, and the
/// workers' part of the bytes for each job that runs. So whichever is scarcer, bytes or workers,
/// is what lines share.
#[derive(Debug)]
pub(crate) struct Accounts {
    now: Moment,
    accounts: Slab<Account>,
    /// Those that hold something, and some that have when it was last looked.
    holding: Vec<usize>,
    /// One worker's part of the admissible bytes, by executor.
    worker_bytes: Vec<u64>,
    /// The most that any line has had in proportion to its share.
    level: f64,
    /// The last of all turns that were given, in the order of turns.
    last_use_then: u64,
    /// What is guaranteed to lines, and what they do not hold of it.
    guaranteed_bytes: u64,
    promised_bytes: u64,
}

impl Account {
    /// Guaranteed bytes that the line does not hold.
    pub(crate) fn promised_bytes(&self) -> u64 {
        self.terms.guaranteed_bytes.saturating_sub(self.held_bytes)
    }

    /// Guaranteed workers that do not run its jobs.
    pub(crate) fn promised_workers(&self) -> usize {
        self.terms.guaranteed_workers.saturating_sub(self.running_jobs)
    }

    /// Whether one more job would be within the line's ceilings.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let room_bytes = self.terms.most_bytes.saturating_sub(self.held_bytes);
        self.running_jobs < self.terms.most_workers && (bytes == 0 || bytes <= room_bytes)
    }

    /// A permit returns some of its bytes.
    pub(crate) fn release_permit(&mut self, bytes: u64) {
        self.held_bytes -= bytes;
        self.permit_bytes -= bytes;
    }

    /// A permit is dropped.
    pub(crate) fn end_permit(&mut self, bytes: u64) {
        self.release_permit(bytes);
        self.permits -= 1;
    }

    /// Of what is held, so many bytes are held by one more permit from now on.
    pub(crate) fn split_permit(&mut self, bytes: u64) {
        self.permit_bytes += bytes;
        self.permits += 1;
    }

    pub(crate) fn holds(&self) -> bool {
        self.held_bytes > 0 || self.running_jobs > 0 || self.permits > 0
    }

    /// The use that a time with what is held now comes to.
    fn use_in(&self, nanos: u64, worker_bytes: u64) -> f64 {
        let workers_part = worker_bytes.saturating_mul(self.running_jobs as u64);
        let held = self.held_bytes.max(workers_part);
        held as f64 * nanos as f64 / f64::from(self.terms.share)
    }
}

impl Accounts {
    pub(crate) fn new() -> Accounts {
        Accounts {
            now: Moment::START,
            accounts: Slab::new(),
            holding: Vec::new(),
            worker_bytes: Vec::new(),
            level: 0.0,
            last_use_then: 0,
            guaranteed_bytes: 0,
            promised_bytes: 0,
        }
    }

    /// What comes next happens now.
    pub(crate) fn set_time(&mut self, now: Moment) {
        self.now = now.max(self.now);
    }

    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    pub(crate) fn open(&mut self, crew: Option<usize>, terms: Terms) -> AccountId {
        self.guaranteed_bytes += terms.guaranteed_bytes;
        self.promised_bytes += terms.guaranteed_bytes;
        let account = Account {
            terms,
            running_jobs: 0,
            held_bytes: 0,
            permits: 0,
            permit_bytes: 0,
            used: 0.0,
            received: 0.0,
            since: self.now,
            is_listed: false,
            crew,
        };
        let was_shared = self.is_shared();
        let id = self.accounts.insert(account);
        if !was_shared && self.is_shared() {
            // From now on use is kept.
            self.accounts.iter_mut().for_each(|(_, account)| account.since = self.now);
        }
        AccountId(id)
    }

    /// Forgets an account that holds nothing.
    pub(crate) fn close(&mut self, id: AccountId) {
        // Use may be kept no more from here on.
        self.charge_all();
        let account = self.accounts.remove(id.0);
        if account.is_listed {
            self.holding.retain(|other| *other != id.0);
        }
        debug_assert!(!account.holds(), "I3: what is held is held by somebody");
        self.guaranteed_bytes -= account.terms.guaranteed_bytes;
        self.promised_bytes -= account.promised_bytes();
    }

    /// Gives up what is guaranteed to a line that needs it no more.
    pub(crate) fn waive(&mut self, id: AccountId) {
        let account = &mut self.accounts[id.0];
        let (guaranteed, promised) = (account.terms.guaranteed_bytes, account.promised_bytes());
        account.terms.guaranteed_bytes = 0;
        self.guaranteed_bytes -= guaranteed;
        self.promised_bytes -= promised;
    }

    pub(crate) fn get(&self, id: AccountId) -> &Account {
        &self.accounts[id.0]
    }

    pub(crate) fn guaranteed_bytes(&self) -> u64 {
        self.guaranteed_bytes
    }

    /// Guaranteed bytes that are held by nobody.
    pub(crate) fn promised_bytes(&self) -> u64 {
        self.promised_bytes
    }

    /// Those of them that only other lines than this can have.
    pub(crate) fn promised_to_others(&self, id: AccountId) -> u64 {
        self.promised_bytes - self.get(id).promised_bytes()
    }

    /// An executor's number of workers, or the admissible bytes, have changed.
    pub(crate) fn set_worker_bytes(&mut self, crew: usize, bytes: u64) {
        self.charge_all();
        if self.worker_bytes.len() <= crew {
            self.worker_bytes.resize(crew + 1, 0);
        }
        self.worker_bytes[crew] = bytes;
    }

    /// Whether there are lines that could share: more than one beside that of the acquirers.
    /// Otherwise nothing is kept of what is used, all have the same turn, and so whoever came first
    /// is first. Most budgets are like that, and their jobs cost less.
    #[inline]
    fn is_shared(&self) -> bool {
        self.accounts.len() > 2
    }

    /// Adds the use since the account was last looked at.
    #[inline]
    fn charge(&mut self, at: usize) -> &mut Account {
        let account = &mut self.accounts[at];
        let nanos = self.now.nanos_since(account.since);
        if nanos > 0 {
            let used = account.use_in(nanos, worker_bytes(&self.worker_bytes, account));
            account.used += used;
            account.received += used * f64::from(account.terms.share);
            account.since = self.now;
            self.level = self.level.max(account.used);
        }
        account
    }

    /// What a line has had until now, in byte-nanoseconds.
    pub(crate) fn received(&self, id: AccountId) -> f64 {
        let account = self.get(id);
        if !self.is_shared() {
            return account.received;
        }
        let nanos = self.now.nanos_since(account.since);
        let used = account.use_in(nanos, worker_bytes(&self.worker_bytes, account));
        account.received + used * f64::from(account.terms.share)
    }

    fn charge_all(&mut self) {
        if !self.is_shared() {
            return;
        }
        let mut nth = 0;
        while let Some(at) = self.holding.get(nth).copied() {
            let account = self.charge(at);
            if account.holds() {
                nth += 1;
            } else {
                account.is_listed = false;
                self.holding.swap_remove(nth);
            }
        }
    }

    /// Changes what a line holds.
    #[inline]
    pub(crate) fn change(&mut self, id: AccountId, change: impl FnOnce(&mut Account)) {
        let account = if self.is_shared() { self.charge(id.0) } else { &mut self.accounts[id.0] };
        let promised = account.promised_bytes();
        change(account);
        let promised_now = account.promised_bytes();
        if !std::mem::replace(&mut account.is_listed, true) {
            self.holding.push(id.0);
        }
        self.promised_bytes = self.promised_bytes - promised + promised_now;
    }

    /// Gives the job at a line's head its turn. `begins`: nobody waited in the line before.
    ///
    /// A line that begins to wait has had no less than any other: who was away has nothing saved
    /// up. (It may have had more, and then waits for that.)
    #[inline]
    pub(crate) fn turn(&mut self, id: AccountId, seq: u64, begins: bool) -> Turn {
        if !self.is_shared() {
            // Behind those who have waited since there were lines that shared.
            return Turn { use_then: self.last_use_then, seq };
        }
        if begins {
            self.charge_all();
        }
        let level = if begins { self.level } else { 0.0 };
        let account = self.charge(id.0);
        account.used = account.used.max(level);
        let account = &self.accounts[id.0];
        let ahead = account.use_in(OUTLOOK_NANOS, worker_bytes(&self.worker_bytes, account));
        let use_then = (account.used + ahead).to_bits();
        self.last_use_then = self.last_use_then.max(use_then);
        Turn { use_then, seq }
    }
}

#[inline]
fn worker_bytes(by_crew: &[u64], account: &Account) -> u64 {
    account.crew.and_then(|crew| by_crew.get(crew)).copied().unwrap_or(0)
}
