//! One lane's line: the jobs inside its bounds, and behind them those that stand outside.

use std::sync::Arc;

use crate::counts::Counts;
use crate::error::Limit;
use crate::line::Line;
use crate::sys::clock::Moment;

/// A waiting job.
#[derive(Debug)]
pub(crate) struct Entry<J, W> {
    pub(crate) job: J,
    pub(crate) input_bytes: u64,
    /// Working and input bytes: what it is charged when it is admitted.
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
    /// Whom to tell when a job that stands outside gets its place.
    pub(crate) submitter: Option<W>,
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
    /// Whether the crew's heap of heads has an entry for this lane.
    pub(crate) listed: bool,
    pub(crate) running_jobs: usize,
    pub(crate) running_bytes: u64,
    pub(crate) counts: Counts,
}

impl<J, W> Queue<J, W> {
    pub(crate) fn new(name: Arc<str>, limit_jobs: usize, limit_input_bytes: u64) -> Self {
        Queue {
            name,
            limit_jobs,
            limit_input_bytes,
            inside: Line::new(),
            inside_bytes: 0,
            outside: Line::new(),
            listed: false,
            running_jobs: 0,
            running_bytes: 0,
            counts: Counts::default(),
        }
    }

    /// The job that has waited longest. With nothing inside it is the first outside: a lane
    /// without capacity hands its jobs straight to a worker, and so does any lane a job whose
    /// input is larger than the whole queue may hold.
    pub(crate) fn head(&self) -> Option<(u64, &Entry<J, W>)> {
        self.inside.front().or_else(|| self.outside.front())
    }

    pub(crate) fn outside_bytes(&self) -> u64 {
        // Saturating: what callers hold is bounded by nothing but their declarations.
        self.outside.iter().fold(0, |sum, entry| sum.saturating_add(entry.input_bytes))
    }

    pub(crate) fn has_room(&self, input_bytes: u64) -> bool {
        self.limit_met_by(input_bytes).is_none()
    }

    /// Which of the lane's own limits keeps a job with this much input out, if one does.
    pub(crate) fn limit_met_by(&self, input_bytes: u64) -> Option<Limit> {
        if self.inside.len() >= self.limit_jobs {
            let waiting = self.inside.len();
            return Some(Limit::LaneJobs { waiting, limit: self.limit_jobs });
        }
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
