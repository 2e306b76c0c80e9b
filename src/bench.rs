//! The free workers of an executor, and the admitted jobs that are meant for them.

use std::collections::VecDeque;
use std::time::Duration;

use slab::Slab;

use crate::counts::Ended;
use crate::effects::Verdict;
use crate::sys::clock::Moment;

/// An admitted job on its way to a worker. Its bytes are held from here on.
#[derive(Debug)]
pub(crate) struct Grant<J> {
    pub(crate) job: J,
    pub(crate) lane: usize,
    pub(crate) seq: u64,
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
    /// From when on it must not start any more.
    pub(crate) expires: Moment,
    /// Its place among those that are admitted.
    pub(crate) slot: usize,
}

/// What a job that is admitted and has not ended holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) lane: usize,
    pub(crate) seq: u64,
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
}

/// What a worker reports when its job has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) slot: usize,
    pub(crate) ended: Ended,
    pub(crate) waited: Duration,
    /// Where somebody wants to know.
    pub(crate) ran: Option<Duration>,
}

/// A worker's priority for the system's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Normal,
    Low,
}

#[derive(Debug)]
pub(crate) struct Bench<J, W> {
    /// Admitted jobs that no worker has fetched yet, at most one for each free worker.
    ready: VecDeque<Grant<J>>,
    /// These, and those that run.
    holding: Slab<Holding>,
    workers: usize,
    free: usize,
    /// Free workers that lie down, the last one on top: its caches are the warmest, and it may
    /// not have fallen asleep yet.
    benched: Vec<W>,
    /// Those of low priority, who are called when none of the others is left: next to other
    /// threads of the program a lone job would get little of the processor from them.
    benched_low: Vec<W>,
    /// Workers that were told to come, or stay awake to look, and have not arrived.
    told: usize,
}

impl<J, W> Bench<J, W> {
    pub(crate) fn new() -> Self {
        Bench {
            ready: VecDeque::new(),
            holding: Slab::new(),
            workers: 0,
            free: 0,
            benched: Vec::new(),
            benched_low: Vec::new(),
            told: 0,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Free workers that no admitted job is meant for.
    pub(crate) fn free(&self) -> usize {
        self.free - self.ready.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn has_told(&self) -> bool {
        self.told > 0
    }

    pub(crate) fn start(&mut self) {
        self.workers += 1;
        self.free += 1;
    }

    /// A worker that was counted did not start.
    pub(crate) fn miss(&mut self) {
        self.workers -= 1;
        self.free -= 1;
    }

    /// A job is admitted.
    #[inline]
    pub(crate) fn hold(&mut self, holding: Holding) -> usize {
        self.holding.insert(holding)
    }

    /// What the job with this number holds, unless it has ended.
    pub(crate) fn holding_mut(&mut self, slot: usize, seq: u64) -> Option<&mut Holding> {
        self.holding.get_mut(slot).filter(|holding| holding.seq == seq)
    }

    pub(crate) fn holdings(&self) -> impl Iterator<Item = &Holding> {
        self.holding.iter().map(|(_, holding)| holding)
    }

    /// Keeps an admitted job for a free worker that is not here.
    pub(crate) fn make_ready(&mut self, grant: Grant<J>) {
        self.ready.push_back(grant);
    }

    /// Hands an admitted job to a free worker that is here.
    pub(crate) fn give(&mut self, grant: Grant<J>) -> Grant<J> {
        self.free -= 1;
        grant
    }

    /// Takes back an admitted job that no worker has fetched.
    pub(crate) fn take_back(&mut self, seq: u64) -> Option<Grant<J>> {
        let at = self.ready.iter().position(|grant| grant.seq == seq)?;
        let grant = self.ready.remove(at)?;
        self.holding.remove(grant.slot);
        Some(grant)
    }

    pub(crate) fn take_ready(&mut self) -> Option<Grant<J>> {
        let grant = self.ready.pop_front()?;
        self.free -= 1;
        Some(grant)
    }

    /// A worker's job has ended.
    pub(crate) fn become_free(&mut self, slot: usize) -> Holding {
        self.free += 1;
        self.holding.remove(slot)
    }

    pub(crate) fn lie_down(&mut self, worker: W, rank: Rank) {
        match rank {
            Rank::Normal => self.benched.push(worker),
            Rank::Low => self.benched_low.push(worker),
        }
    }

    pub(crate) fn stay_awake(&mut self) {
        self.told += 1;
    }

    pub(crate) fn arrive(&mut self) {
        self.told -= 1;
    }

    /// Wakes one worker if there is work that nobody is on the way to.
    ///
    /// While one that was told is on its way nobody else is: it will take a job and, finding
    /// more, call the next. So a job costs one wake at most, and a burst of short jobs that one
    /// worker can keep up with costs one in all.
    pub(crate) fn rouse_one(&mut self, told: &mut Vec<(W, Verdict)>) {
        if !self.ready.is_empty()
            && self.told == 0
            && let Some(worker) = self.benched.pop().or_else(|| self.benched_low.pop())
        {
            self.told = 1;
            told.push((worker, Verdict::Go));
        }
    }

    /// Wakes everybody, for the end.
    pub(crate) fn rouse_all(&mut self, told: &mut Vec<(W, Verdict)>) {
        self.told += self.benched.len() + self.benched_low.len();
        let all = self.benched.drain(..).chain(self.benched_low.drain(..));
        told.extend(all.map(|worker| (worker, Verdict::Go)));
    }

    /// A free worker leaves. `true`: it was the last one.
    pub(crate) fn leave(&mut self) -> bool {
        self.free -= 1;
        self.workers -= 1;
        self.workers == 0
    }
}
