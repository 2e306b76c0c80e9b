//! The last minutes, for the page.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::{Executor, LaneStats, Ledger, Stats};

/// What was seen at one time.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) ledger: Ledger,
    pub(crate) waiting_input_bytes: u64,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) lanes: Vec<LaneSample>,
}

#[derive(Clone, Debug)]
pub(crate) struct LaneSample {
    pub(crate) name: Arc<str>,
    /// Those that wait, with the places of those that are still on their way, and those that run.
    pub(crate) jobs: usize,
    pub(crate) oldest_wait: Duration,
    pub(crate) waiting_jobs: usize,
    /// So far.
    pub(crate) ended_jobs: u64,
}

impl Sample {
    fn of(stats: &Stats) -> Sample {
        let lane = |lane: &LaneStats| LaneSample {
            name: Arc::clone(&lane.name),
            jobs: lane.waiting_jobs + lane.reserved_places + lane.running_jobs,
            oldest_wait: lane.oldest_wait.unwrap_or_default(),
            waiting_jobs: lane.waiting_jobs,
            ended_jobs: lane.counts.completed + lane.counts.panicked,
        };
        // Nothing goes to the first one, which is the default lane.
        let lanes = stats.lanes.iter().skip(1).map(lane).collect();
        Sample {
            ledger: stats.ledger,
            waiting_input_bytes: stats.waiting_input_bytes,
            resident_bytes: stats.resident_bytes,
            lanes,
        }
    }
}

/// Samples, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    samples: Arc<Mutex<VecDeque<Sample>>>,
}

impl History {
    const EVERY_MS: u32 = 500;
    pub(crate) const EVERY: Duration = Duration::from_millis(History::EVERY_MS as u64);
    pub(crate) const LENGTH: usize = 240;

    /// Takes samples, for ever.
    pub(crate) async fn keep(self, executor: Arc<Executor>) {
        let mut clock = tokio::time::interval(History::EVERY);
        loop {
            clock.tick().await;
            self.look(&executor);
        }
    }

    pub(crate) fn look(&self, executor: &Executor) {
        let sample = Sample::of(&executor.stats());
        let mut samples = self.samples.lock().expect("nothing panics under this lock");
        if samples.len() == History::LENGTH {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// `None` if there are not so many yet.
    pub(crate) fn last_seconds(&self, seconds: u64) -> Option<Vec<Sample>> {
        let count = usize::try_from(seconds * 1000 / u64::from(History::EVERY_MS)).ok()?;
        let samples = self.samples.lock().expect("nothing panics under this lock");
        let first = samples.len().checked_sub(count)?;
        Some(samples.range(first..).cloned().collect())
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        let samples = self.samples.lock().expect("nothing panics under this lock");
        samples.iter().cloned().collect()
    }
}
