//! One lane's line: the jobs inside its bounds, and behind them those that stand outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::accounts::{AccountId, Terms, Turn};
use crate::counts::{Counts, Ended};
use crate::error::Limit;
use crate::line::Line;
use crate::overtaking::Overtaking;
use crate::pace::Pace;
use crate::sys::clock::Moment;
#[cfg(feature = "hdrhistogram")]
use crate::times::Times;

/// What a lane is to be like.
#[derive(Clone, Debug)]
pub(crate) struct LanePlan {
    pub(crate) name: Arc<str>,
    pub(crate) limit_jobs: usize,
    pub(crate) limit_input_bytes: u64,
    pub(crate) terms: Terms,
    /// From which wait of the oldest on the newest goes first.
    pub(crate) newest_first_after: Option<Duration>,
    /// How many places are to have become free before submitters are told that they have theirs.
    pub(crate) told_together: usize,
}

/// Whoever waits for a place.
#[derive(Debug)]
pub(crate) struct Submitter<W> {
    pub(crate) waiter: W,
    /// Whether it is told of its place at once, or may be told together with others.
    pub(crate) is_told_at_once: bool,
}

/// How often somebody who waits was passed, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    times: u32,
    since: Option<Moment>,
}

impl Passed {
    pub(crate) fn once_more(&mut self, now: Moment) {
        self.times += 1;
        self.since.get_or_insert(now);
    }

    pub(crate) fn may_be_once_more(&self, overtaking: &Overtaking, now: Moment) -> bool {
        let for_time = self.since.map_or(Duration::ZERO, |since| now.since(since));
        overtaking.allows(self.times, for_time)
    }
}

/// A waiting job.
#[derive(Debug)]
pub(crate) struct Entry<J, W> {
    pub(crate) job: J,
    pub(crate) input_bytes: u64,
    /// Working and input bytes: what it is charged when it is admitted.
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
    /// From when on it must not start any more.
    pub(crate) expires: Moment,
    /// Whom to tell when a job that stands outside gets its place.
    pub(crate) submitter: Option<Submitter<W>>,
}

/// A bounded queue and the submitters that wait for a place in it.
///
/// A submitter that has to wait leaves its job here, so that the job keeps its place in the
/// order and the next free worker can have it before its submitter is even awake.
#[derive(Debug)]
pub(crate) struct Queue<J, W> {
    pub(crate) name: Arc<str>,
    pub(crate) limit_jobs: usize,
    pub(crate) limit_input_bytes: u64,
    /// Inside the bounds. Everyone here came before everyone outside.
    pub(crate) inside: Line<Entry<J, W>>,
    pub(crate) inside_bytes: u64,
    pub(crate) outside: Line<Entry<J, W>>,
    /// Submitters whose jobs have got their places, and who have not been told.
    ///
    /// Told one by one, those at a full lane would come back with one job each, find it full again and
    /// wait: a switch of threads for every job. Told together, they find room for many.
    pub(crate) placed: Vec<W>,
    told_together: usize,
    /// Of those who wait, who was passed: mostly nobody. Not in the entry, which is touched for
    /// every job.
    passed: BTreeMap<u64, Passed>,
    newest_first_after: Option<Duration>,
    /// The head's turn. `None` while nobody waits, or the lane has as much as it may have.
    pub(crate) turn: Option<Turn>,
    /// Whether anybody waits. While they do, with a turn or without, the lane is not new among those
    /// that want something.
    pub(crate) wants: bool,
    pub(crate) account: AccountId,
    pub(crate) counts: Counts,
    #[cfg(feature = "hdrhistogram")]
    pub(crate) wait_times: Times,
    #[cfg(feature = "hdrhistogram")]
    pub(crate) run_times: Times,
    pace: Pace,
    /// Places that are taken for jobs still to come. Their bytes are among those inside.
    pub(crate) reserved_jobs: usize,
    /// Jobs that left without running, and whose closures have not been dropped.
    pub(crate) leaving: usize,
    /// How many hold a lane that was added to an executor, and goes when it is not needed any
    /// more. `None`: it stays.
    pub(crate) handles: Option<usize>,
}

impl<J, W> Queue<J, W> {
    pub(crate) fn new(plan: LanePlan, account: AccountId) -> Self {
        let LanePlan { name, limit_jobs, limit_input_bytes, newest_first_after, .. } = plan;
        Queue {
            name,
            limit_jobs,
            limit_input_bytes,
            inside: Line::new(),
            inside_bytes: 0,
            outside: Line::new(),
            placed: Vec::new(),
            told_together: plan.told_together,
            passed: BTreeMap::new(),
            newest_first_after,
            turn: None,
            wants: false,
            account,
            counts: Counts::default(),
            #[cfg(feature = "hdrhistogram")]
            wait_times: Times::default(),
            #[cfg(feature = "hdrhistogram")]
            run_times: Times::default(),
            pace: Pace::default(),
            reserved_jobs: 0,
            leaving: 0,
            handles: None,
        }
    }

    /// The job that has its turn, or else the one that has waited longest. With nothing inside it is the first outside: a lane
    /// without capacity hands its jobs straight to a worker, and so does any lane a job whose
    /// input is larger than the whole queue may hold.
    pub(crate) fn head(&self) -> Option<(u64, &Entry<J, W>)> {
        if self.may_choose()
            && let Some(Turn { seq, .. }) = self.turn
            && let Some(entry) = self.inside.get(seq)
        {
            return Some((seq, entry));
        }
        self.inside.front().or_else(|| self.outside.front())
    }

    /// A job, or a submission, has ended. `ran`: for how long, if it has run and that was measured.
    #[inline]
    pub(crate) fn count(&mut self, ended: Ended, waited: Duration, ran: Option<Duration>) {
        self.counts.count(ended, waited);
        #[cfg(feature = "hdrhistogram")]
        {
            self.wait_times.record(ended, waited);
            if let Some(ran) = ran.filter(|_| ended.has_run()) {
                self.run_times.record(ended, ran);
            }
        }
        #[cfg(not(feature = "hdrhistogram"))]
        let _ = ran;
    }

    /// How long somebody who came now would wait. `ahead`: for how many workers beside those who wait.
    pub(crate) fn predicted_wait(&mut self, ahead: usize, now: Moment) -> Duration {
        let before = self.taken_places() + self.outside.len() + ahead;
        let pace = self.pace.look(now, self.counts.left());
        match pace {
            _ if before == 0 => Duration::ZERO,
            Some((time, left)) if left > 0 => time.mul_f64(before as f64 / left as f64),
            // Nobody has left: no less than that, then.
            Some((time, _)) => time.max(self.oldest_wait(now)),
            None => self.oldest_wait(now),
        }
    }

    fn oldest_wait(&self, now: Moment) -> Duration {
        self.oldest_since().map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Since when the one that has waited longest has.
    pub(crate) fn oldest_since(&self) -> Option<Moment> {
        let oldest = self.inside.front().or_else(|| self.outside.front());
        oldest.map(|(_, entry)| entry.since)
    }

    /// The job that is to have the next turn: the head that has one as long as it is there, for bytes
    /// are kept for it. Otherwise the oldest, or the newest if the oldest has waited for too long.
    pub(crate) fn next(&self, now: Moment) -> Option<(u64, &Entry<J, W>)> {
        let (seq, head) = self.head()?;
        let Some(after) = self.newest_first_after else { return Some((seq, head)) };
        if self.turn.is_some_and(|turn| turn.seq == seq) || now.since(head.since) <= after {
            return Some((seq, head));
        }
        self.inside.last().or(Some((seq, head)))
    }

    /// Whether the newest may go first: then it has to be known which that is.
    pub(crate) fn may_choose(&self) -> bool {
        self.newest_first_after.is_some()
    }

    /// Whether somebody who waits may be passed once more.
    pub(crate) fn may_pass(&self, seq: u64, overtaking: &Overtaking, now: Moment) -> bool {
        self.passed.get(&seq).copied().unwrap_or_default().may_be_once_more(overtaking, now)
    }

    /// Somebody who waits is passed.
    pub(crate) fn pass(&mut self, seq: u64, now: Moment) {
        self.passed.entry(seq).or_default().once_more(now);
    }

    /// A job passes those before it.
    pub(crate) fn overtake(&mut self, seq: u64, now: Moment) {
        self.counts.overtook += 1;
        let before = self.inside.entries().map(|(other, _)| other).take_while(|other| *other < seq);
        before.for_each(|other| self.passed.entry(other).or_default().once_more(now));
    }

    /// A job joins before others that may have been passed: it has been passed as often as the first
    /// of them, so that from the head back nobody has been passed less often than who is behind.
    pub(crate) fn inherit_passes(&mut self, seq: u64) {
        let behind = self.inside.behind(seq).and_then(|(behind, _)| self.passed.get(&behind));
        if let Some(passed) = behind.copied() {
            self.passed.insert(seq, passed);
        }
    }

    /// A job has left the line.
    #[inline]
    pub(crate) fn forget_passes(&mut self, seq: u64) {
        if !self.passed.is_empty() {
            self.passed.remove(&seq);
        }
    }

    pub(crate) fn forget_passes_of_gone(&mut self) {
        let (inside, outside) = (&self.inside, &self.outside);
        self.passed.retain(|seq, _| inside.contains(*seq) || outside.contains(*seq));
    }

    /// Those behind the head that have their place.
    pub(crate) fn behind_head(&self) -> impl Iterator<Item = (u64, &Entry<J, W>)> {
        // Where the newest goes first there is no order for others to overtake in.
        let most = if self.may_choose() { 0 } else { usize::MAX };
        self.inside.entries().skip(1).take(most)
    }

    /// Whether those placed are to be told.
    pub(crate) fn is_placed_due(&self) -> bool {
        let free = self.limit_jobs - self.taken_places();
        !self.placed.is_empty() && self.placed.len() + free >= self.told_together
    }

    /// Whether submitters may be told together.
    pub(crate) fn tells_together(&self) -> bool {
        self.told_together > 1
    }

    pub(crate) fn outside_bytes(&self) -> u64 {
        // Saturating: what callers hold is bounded by nothing but their declarations.
        self.outside.iter().fold(0, |sum, entry| sum.saturating_add(entry.input_bytes))
    }

    pub(crate) fn taken_places(&self) -> usize {
        self.inside.len() + self.reserved_jobs
    }

    pub(crate) fn has_room(&self, input_bytes: u64) -> bool {
        self.limit_met_by(input_bytes).is_none()
    }

    /// Which of the lane's own limits keeps a job with this much input out, if one does.
    pub(crate) fn limit_met_by(&self, input_bytes: u64) -> Option<Limit> {
        let waiting = self.taken_places();
        if waiting >= self.limit_jobs {
            return Some(Limit::LaneJobs { waiting, limit: self.limit_jobs });
        }
        self.bytes_met_by(input_bytes)
    }

    /// The same for a job that has its place.
    pub(crate) fn bytes_met_by(&self, input_bytes: u64) -> Option<Limit> {
        if input_bytes > 0 && input_bytes > self.limit_input_bytes - self.inside_bytes {
            return Some(Limit::LaneInputBytes {
                input_bytes,
                waiting_bytes: self.inside_bytes,
                limit_bytes: self.limit_input_bytes,
            });
        }
        None
    }
}
