//! What became of jobs.

use std::time::Duration;

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
    /// A job has been run, or found to be cancelled when it was to be.
    #[inline]
    pub(crate) fn ran(&mut self, ended: Ended, waited: Duration) {
        match ended {
            Ended::Completed => self.completed += 1,
            Ended::Panicked => self.panicked += 1,
            Ended::Cancelled => self.cancelled += 1,
            Ended::Expired => self.expired += 1,
        }
        if matches!(ended, Ended::Completed | Ended::Panicked) {
            self.waited += waited;
        }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.aborted += other.aborted;
        self.evicted += other.evicted;
        self.stalled += other.stalled;
        self.expired += other.expired;
        self.refused_full += other.refused_full;
        self.refused_never_fits += other.refused_never_fits;
        self.refused_closed += other.refused_closed;
        self.refused_own_worker += other.refused_own_worker;
        self.overtook += other.overtook;
        self.waited += other.waited;
    }
}

/// How a job ended on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Panicked,
    Cancelled,
    /// Its time to start was over.
    Expired,
}
