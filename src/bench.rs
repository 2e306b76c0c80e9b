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

/// The workers of one rank.
#[derive(Debug)]
struct Side<W> {
    free: usize,
    /// Free workers that lie down, the last one on top: its caches are the warmest, and it may
    /// not have fallen asleep yet.
    benched: Vec<W>,
    /// Workers that were told to come, or stay awake to look, and have not arrived.
    told: usize,
}

/// Admitted jobs that no worker has fetched yet, and the workers that are free for them.
///
/// There are never more such jobs than free workers. Those that have a guaranteed worker take one of normal
/// priority, for which the others leave as many as are promised: a job that was given one of low
/// priority would get next to nothing of the processor beside one that has the other. Whatever is
/// promised, a job for which there is no worker of its kind takes one of the other.
#[derive(Debug)]
pub(crate) struct Bench<J, W> {
    ready: VecDeque<Grant<J>>,
    ready_guaranteed: VecDeque<Grant<J>>,
    /// These, and those that run.
    holding: Slab<Holding>,
    workers: usize,
    normal: Side<W>,
    low: Side<W>,
}

impl<J, W> Bench<J, W> {
    pub(crate) fn new() -> Self {
        let side = || Side { free: 0, benched: Vec::new(), told: 0 };
        Bench {
            ready: VecDeque::new(),
            ready_guaranteed: VecDeque::new(),
            holding: Slab::new(),
            workers: 0,
            normal: side(),
            low: side(),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Free workers that no admitted job is meant for.
    pub(crate) fn free(&self) -> usize {
        self.normal.free + self.low.free - self.ready.len() - self.ready_guaranteed.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.ready_guaranteed.is_empty()
    }

    pub(crate) fn has_told(&self) -> bool {
        self.normal.told + self.low.told > 0
    }

    fn side(&mut self, rank: Rank) -> &mut Side<W> {
        match rank {
            Rank::Normal => &mut self.normal,
            Rank::Low => &mut self.low,
        }
    }

    pub(crate) fn start(&mut self, rank: Rank) {
        self.workers += 1;
        self.side(rank).free += 1;
    }

    /// A worker that was counted did not start.
    pub(crate) fn miss(&mut self, rank: Rank) {
        self.workers -= 1;
        self.side(rank).free -= 1;
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

    /// Keeps an admitted job for a free worker.
    pub(crate) fn make_ready(&mut self, grant: Grant<J>, is_guaranteed: bool) {
        let ready = if is_guaranteed { &mut self.ready_guaranteed } else { &mut self.ready };
        ready.push_back(grant);
    }

    /// Takes back an admitted job that no worker has fetched.
    pub(crate) fn take_back(&mut self, seq: u64) -> Option<Grant<J>> {
        let take = |ready: &mut VecDeque<Grant<J>>| {
            let at = ready.iter().position(|grant| grant.seq == seq)?;
            ready.remove(at)
        };
        let grant = take(&mut self.ready).or_else(|| take(&mut self.ready_guaranteed))?;
        self.holding.remove(grant.slot);
        Some(grant)
    }

    /// Which line a free worker of this rank takes from.
    fn line(&mut self, rank: Rank, promised: usize) -> &mut VecDeque<Grant<J>> {
        let takes_guaranteed = match rank {
            Rank::Normal => {
                let is_left = self.normal.free > promised || self.ready.len() > self.low.free;
                !self.ready_guaranteed.is_empty() || !is_left
            }
            Rank::Low => self.ready.is_empty() && self.ready_guaranteed.len() > self.normal.free,
        };
        if takes_guaranteed { &mut self.ready_guaranteed } else { &mut self.ready }
    }

    /// `promised`: guaranteed workers that no job holds.
    pub(crate) fn take_ready(&mut self, rank: Rank, promised: usize) -> Option<Grant<J>> {
        let grant = self.line(rank, promised).pop_front()?;
        self.side(rank).free -= 1;
        Some(grant)
    }

    /// A worker's job has ended.
    pub(crate) fn become_free(&mut self, rank: Rank, slot: usize) -> Holding {
        self.side(rank).free += 1;
        self.holding.remove(slot)
    }

    pub(crate) fn lie_down(&mut self, worker: W, rank: Rank) {
        self.side(rank).benched.push(worker);
    }

    pub(crate) fn stay_awake(&mut self, rank: Rank) {
        self.side(rank).told += 1;
    }

    pub(crate) fn arrive(&mut self, rank: Rank) {
        self.side(rank).told -= 1;
    }

    /// Wakes one worker if there is work that nobody is on the way to; one of normal priority if it may be:
    /// next to other threads of the program a lone job would get little of the processor from the others.
    ///
    /// While one that was told is on its way nobody else is: it will take a job or not and, finding
    /// more, call the next. So a job costs one wake at most, and a burst of short jobs that one
    /// worker can keep up with costs one in all. But for a job that has a guaranteed worker nobody
    /// waits who has low priority, and may be long on the way.
    pub(crate) fn rouse_one(&mut self, promised: usize, told: &mut Vec<(W, Verdict)>) {
        let is_anybody_told = self.has_told();
        for rank in [Rank::Normal, Rank::Low] {
            let is_wanted = !self.line(rank, promised).is_empty();
            let has_guaranteed = rank == Rank::Normal && !self.ready_guaranteed.is_empty();
            let side = self.side(rank);
            let comes = if has_guaranteed { side.told > 0 } else { is_anybody_told };
            if is_wanted
                && !comes
                && let Some(worker) = side.benched.pop()
            {
                side.told += 1;
                told.push((worker, Verdict::Go));
                return;
            }
        }
    }

    /// Wakes everybody, for the end.
    pub(crate) fn rouse_all(&mut self, told: &mut Vec<(W, Verdict)>) {
        for side in [&mut self.normal, &mut self.low] {
            side.told += side.benched.len();
            told.extend(side.benched.drain(..).map(|worker| (worker, Verdict::Go)));
        }
    }

    /// A free worker leaves. `true`: it was the last one.
    pub(crate) fn leave(&mut self, rank: Rank) -> bool {
        self.side(rank).free -= 1;
        self.workers -= 1;
        self.workers == 0
    }
}
