//! What the model says of what became of jobs, and of what keeps them out.

use std::time::Duration;

use super::model::{At, GONE, Id, Model, ModelJob, ModelLine};
use crate::counts::{Counts, Ended};
use crate::error::Limit;

impl Model {
    pub(super) fn limit_met(&self, crew: usize, lane: usize) -> Limit {
        let is_there = |job: &&ModelJob| (job.crew, job.lane, job.at) == (crew, lane, At::Outside);
        let input_bytes = self.jobs.iter().find(is_there).unwrap().input;
        let ModelLine { limit_jobs: limit, limit_bytes, .. } = self.crew(crew).lanes[&lane];
        let (waiting, waiting_bytes) = self.inside(crew, Some(lane));
        if waiting >= limit {
            Limit::LaneJobs { waiting, limit }
        } else if input_bytes > 0 && waiting_bytes + input_bytes > limit_bytes {
            Limit::LaneInputBytes { input_bytes, waiting_bytes, limit_bytes }
        } else {
            let (waiting_bytes, limit_bytes) = (self.inside(crew, None).1, self.crew(crew).limit);
            Limit::WaitingBytes { input_bytes, waiting_bytes, limit_bytes }
        }
    }

    /// What became of the jobs of lanes that are gone.
    pub(super) fn past(&self, crew: usize) -> Counts {
        self.counts(crew, GONE)
    }

    pub(super) fn counts(&self, crew: usize, lane: usize) -> Counts {
        let mut counts = Counts::default();
        let is_there = |id: &Id| {
            let job = self.jobs.iter().find(|job| job.id == *id);
            job.is_some_and(|job| (job.crew, job.lane) == (crew, lane))
        };
        counts.overtook = self.overtook.iter().filter(|id| is_there(id)).count() as u64;
        for job in self.jobs.iter().filter(|job| (job.crew, job.lane) == (crew, lane)) {
            let Some(end) = job.end else { continue };
            *count_of(&mut counts, end) += 1;
            if matches!(end, Ended::Completed | Ended::Panicked) {
                counts.waited += Duration::from_nanos(job.id);
            }
        }
        counts
    }
}

fn count_of(counts: &mut Counts, end: Ended) -> &mut u64 {
    match end {
        Ended::Completed => &mut counts.completed,
        Ended::Panicked => &mut counts.panicked,
        Ended::Cancelled => &mut counts.cancelled,
        Ended::Aborted => &mut counts.aborted,
        Ended::Evicted => &mut counts.evicted,
        Ended::Stalled => &mut counts.stalled,
        Ended::Expired => &mut counts.expired,
        Ended::RefusedFull => &mut counts.refused_full,
        Ended::RefusedNeverFits => &mut counts.refused_never_fits,
        Ended::RefusedClosed => &mut counts.refused_closed,
        Ended::RefusedOwnWorker => &mut counts.refused_own_worker,
    }
}
