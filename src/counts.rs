//! What became of jobs.

use std::time::Duration;

/// How a job, or a submission, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ended {
    /// It returned.
    Completed,
    /// It panicked.
    Panicked,
    /// It was cancelled before it started.
    Cancelled,
    /// It waited, and was ended with the executor or by
    /// [`abort_waiting`](crate::Executor::abort_waiting).
    Aborted,
    /// It waited, and was ended because the budget shrank below its need.
    Evicted,
    /// It waited, in the lane or for a place there, and the budget stood still.
    Stalled,
    /// Its time to start was over before it did. Submissions that waited for a place until then
    /// are included.
    Expired,
    /// The lane was full, at once or after a timeout.
    RefusedFull,
    /// It never fits.
    RefusedNeverFits,
    /// The executor was closed.
    RefusedClosed,
    /// One of the executor's own workers would have had to wait for a place.
    RefusedOwnWorker,
}

impl Ended {
    /// All of them.
    pub const ALL: [Ended; 11] = [
        Ended::Completed,
        Ended::Panicked,
        Ended::Cancelled,
        Ended::Aborted,
        Ended::Evicted,
        Ended::Stalled,
        Ended::Expired,
        Ended::RefusedFull,
        Ended::RefusedNeverFits,
        Ended::RefusedClosed,
        Ended::RefusedOwnWorker,
    ];

    /// Whether a job that ended so has run.
    pub fn has_run(self) -> bool {
        matches!(self, Ended::Completed | Ended::Panicked)
    }
}

/// What became of the jobs of a lane, or of all lanes, since the executor was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Jobs that returned.
    pub completed: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// Jobs that were cancelled before they started.
    pub cancelled: u64,
    /// Waiting jobs that were ended with the executor or by `abort_waiting`.
    pub aborted: u64,
    /// Waiting jobs that were ended because the budget shrank below their need.
    pub evicted: u64,
    /// Jobs that were ended, or submissions refused, because the budget stood still.
    pub stalled: u64,
    /// Jobs whose time to start was over before they did, submissions that waited for a place until
    /// then included.
    pub expired: u64,
    /// Submissions refused because the lane was full, at once or after a timeout.
    pub refused_full: u64,
    /// Submissions refused because the job never fits.
    pub refused_never_fits: u64,
    /// Submissions refused because the executor was closed.
    pub refused_closed: u64,
    /// Submissions refused because one of the executor's own workers would have had to wait.
    pub refused_own_worker: u64,
    /// Jobs that were admitted before one that came earlier and did not fit.
    pub overtook: u64,
    /// The waits of all jobs that have run, from the call of `submit` to the start, in sum over
    /// the jobs. Known to within a tick of the system's timer for each.
    pub waited: Duration,
}

impl Counts {
    /// How many ended so.
    pub fn of(&self, ended: Ended) -> u64 {
        let mut counts = *self;
        *counts.of_mut(ended)
    }

    /// How many had a place and have it no more.
    pub(crate) fn left(&self) -> u64 {
        let Counts { completed, panicked, cancelled, aborted, evicted, stalled, expired, .. } =
            *self;
        completed + panicked + cancelled + aborted + evicted + stalled + expired
    }

    fn of_mut(&mut self, ended: Ended) -> &mut u64 {
        match ended {
            Ended::Completed => &mut self.completed,
            Ended::Panicked => &mut self.panicked,
            Ended::Cancelled => &mut self.cancelled,
            Ended::Aborted => &mut self.aborted,
            Ended::Evicted => &mut self.evicted,
            Ended::Stalled => &mut self.stalled,
            Ended::Expired => &mut self.expired,
            Ended::RefusedFull => &mut self.refused_full,
            Ended::RefusedNeverFits => &mut self.refused_never_fits,
            Ended::RefusedClosed => &mut self.refused_closed,
            Ended::RefusedOwnWorker => &mut self.refused_own_worker,
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, ended: Ended, waited: Duration) {
        *self.of_mut(ended) += 1;
        if ended.has_run() {
            self.waited += waited;
        }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        for ended in Ended::ALL {
            *self.of_mut(ended) += other.of(ended);
        }
        self.overtook += other.overtook;
        self.waited += other.waited;
    }
}
