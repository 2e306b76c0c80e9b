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
}

impl Sample {
    fn of(stats: &Stats) -> Sample {
        let lane = |lane: &LaneStats| LaneSample {
            name: Arc::clone(&lane.name),
            jobs: lane.waiting_jobs + lane.reserved_places + lane.running_jobs,
            oldest_wait: lane.oldest_wait.unwrap_or_default(),
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
    pub(crate) const EVERY: Duration = Duration::from_millis(500);
    pub(crate) const LENGTH: usize = 240;

    /// Takes samples, for ever.
    pub(crate) async fn keep(self, executor: Arc<Executor>) {
        let mut clock = tokio::time::interval(History::EVERY);
        loop {
            clock.tick().await;
            let sample = Sample::of(&executor.stats());
            let mut samples = self.samples.lock().expect("nothing panics under this lock");
            if samples.len() == History::LENGTH {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        let samples = self.samples.lock().expect("nothing panics under this lock");
        samples.iter().cloned().collect()
    }
}
