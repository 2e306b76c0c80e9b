//! An executor's figures for [Prometheus](https://docs.rs/prometheus-client), read when they are asked for.
//!
//! [`Metrics`] is a collector: with each scrape it takes one consistent picture of the executor, and just
//! after it the histograms; between scrapes it costs nothing. (Waits and runs are recorded by the feature `hdrhistogram`, which
//! this one brings.)
//!
//! All names begin with `admit_`. Those with a lane have the label `lane`, and those that say how jobs
//! ended the label `ended`: the names of [`Ended`] in snake case, `completed` to `refused_own_worker`.
//!
//! | name | kind | unit | labels |
//! |---|---|---|---|
//! | `capacity_bytes`, `reserve_bytes`, `waiting_limit_bytes`, `admissible_bytes`, `held_bytes` | gauge | bytes | |
//! | `resident_bytes`, `retained_bytes` | gauge | bytes, absent where the system does not say | |
//! | `acquired_bytes`, `acquired_permits`, `blocked_acquires` | gauge | bytes, permits, callers | |
//! | `workers`, `free_workers` | gauge | workers | |
//! | `waiting_jobs`, `reserved_places`, `blocked_submits`, `running_jobs`, `kept_permits` | gauge | jobs, places, callers, permits | `lane` |
//! | `waiting_input_bytes`, `running_bytes`, `kept_bytes` | gauge | bytes | `lane` |
//! | `oldest_wait_seconds` | gauge | seconds, 0 where nobody waits | `lane` |
//! | `received_byte_seconds_total` | counter | byte-seconds, see [`LaneStats::received_byte_seconds`] | `lane` |
//! | `overtakes_total` | counter | jobs | `lane` |
//! | `jobs_total` | counter | jobs and submissions | `lane`, `ended` |
//! | `wait_seconds`, `run_seconds` | histogram | seconds | `lane`, `ended` |
//!
//! Lanes that go take their series with them.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use admit::prometheus::Metrics;
//! use admit::{Budget, Cost, Executor, MIB};
//! use prometheus_client::encoding::text::encode;
//! use prometheus_client::registry::Registry;
//!
//! let budget = Budget::new(64 * MIB, 0)?;
//! let executor = Arc::new(Executor::builder().workers(1).budget(budget).build()?);
//! let mut registry = Registry::default();
//! registry.register_collector(Box::new(Metrics::new(&executor)));
//!
//! executor.submit(Cost::new(MIB), || ())?.join()?;
//! executor.drain()?;
//! let mut text = String::new();
//! encode(&mut text, &registry)?;
//! assert!(text.contains("admit_admissible_bytes 67108864\n"));
//! assert!(text.contains("admit_jobs_total{lane=\"default\",ended=\"completed\"} 1\n"));
//! assert!(text.contains("admit_run_seconds_count{lane=\"default\",ended=\"completed\"} 1\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Error;
use std::sync::{Arc, Weak};

use hdrhistogram::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::counts::Ended;
use crate::executor::Executor;
use crate::stats::{LaneStats, Stats};
use crate::times::Times;

/// Upper bounds of the histograms' buckets, in seconds: from what a light job takes to what a client
/// waits, each twice the one before, but for the last.
const BUCKETS: [f64; 14] =
    [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0];

/// An executor's figures: see the [module](self) for their names and units.
///
/// It does not keep the executor alive; of one that is gone there are none.
#[derive(Clone, Debug)]
pub struct Metrics {
    executor: Weak<Executor>,
}

impl Metrics {
    /// Of this executor. Several in one process need a registry each, or one with a prefix or a label
    /// for each.
    pub fn new(executor: &Arc<Executor>) -> Metrics {
        Metrics { executor: Arc::downgrade(executor) }
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        match self.executor.upgrade() {
            Some(executor) => Page(encoder).write(&executor),
            None => Ok(()),
        }
    }
}

type Lane<'a> = [(&'static str, &'a str); 1];
type LaneAndEnd<'a> = [(&'static str, &'a str); 2];

/// What a scrape is answered with.
struct Page<'e>(DescriptorEncoder<'e>);

impl Page<'_> {
    fn write(mut self, executor: &Executor) -> Result<(), Error> {
        let stats = executor.stats();
        self.write_budget(&stats)?;
        self.write_lanes(&stats)?;
        self.write_ends(&stats)?;
        let times: Vec<_> = stats
            .lanes
            .iter()
            .filter_map(|lane| Some((&*lane.name, executor.lane(&lane.name)?)))
            .map(|(name, lane)| (name, lane.wait_times(), lane.run_times()))
            .collect();
        let waits: Vec<_> = times.iter().map(|(name, waits, _)| (*name, waits)).collect();
        let runs: Vec<_> = times.iter().map(|(name, _, runs)| (*name, runs)).collect();
        self.histogram(
            "wait_seconds",
            "From submission to the start, or to the end of the wait",
            &waits,
        )?;
        self.histogram("run_seconds", "From the start of a job to its end", &runs)
    }

    fn write_budget(&mut self, stats: &Stats) -> Result<(), Error> {
        let ledger = &stats.ledger;
        let gauges = [
            ("capacity_bytes", "What the budget covers", Some(ledger.capacity_bytes)),
            ("reserve_bytes", "What nobody declares", Some(ledger.reserve_bytes)),
            (
                "waiting_limit_bytes",
                "Set aside for waiting input",
                Some(ledger.waiting_limit_bytes),
            ),
            ("admissible_bytes", "What may be held at once", Some(ledger.admissible_bytes())),
            ("held_bytes", "Held by jobs and permits", Some(ledger.held_bytes)),
            ("resident_bytes", "The process's resident memory", stats.resident_bytes),
            ("retained_bytes", "Resident memory that nothing declared", stats.retained_bytes),
            ("acquired_bytes", "Held by permits that were acquired", Some(stats.permit_bytes)),
            ("acquired_permits", "Permits that were acquired", Some(stats.permits)),
            (
                "blocked_acquires",
                "Callers that wait for a permit",
                Some(stats.blocked_acquires as u64),
            ),
            ("workers", "Workers", Some(stats.workers as u64)),
            ("free_workers", "Workers without a job", Some(stats.free_workers as u64)),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let name = format!("admit_{name}");
                let metric = self.0.encode_descriptor(&name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        Ok(())
    }

    fn write_lanes(&mut self, stats: &Stats) -> Result<(), Error> {
        type Figure = fn(&LaneStats) -> u64;
        let gauges: [(&str, &str, Figure); 8] = [
            ("waiting_jobs", "Jobs that wait in the lane", |lane| lane.waiting_jobs as u64),
            ("reserved_places", "Places for jobs to come", |lane| lane.reserved_places as u64),
            ("blocked_submits", "Submissions that wait", |lane| lane.blocked_submits as u64),
            ("running_jobs", "Jobs that are admitted", |lane| lane.running_jobs as u64),
            ("kept_permits", "Permits that jobs kept", |lane| lane.kept_permits),
            ("waiting_input_bytes", "Input that waits", |lane| lane.waiting_input_bytes),
            ("running_bytes", "Held by admitted jobs", |lane| lane.running_bytes),
            ("kept_bytes", "Held by permits that jobs kept", |lane| lane.kept_bytes),
        ];
        let lanes = || stats.lanes.iter();
        for (name, help, figure) in gauges {
            let values = lanes().map(|lane| (lane_of(lane), ConstGauge::new(figure(lane))));
            self.family(name, help, MetricType::Gauge, values)?;
        }
        let oldest = |lane: &LaneStats| lane.oldest_wait.unwrap_or_default().as_secs_f64();
        let oldest = lanes().map(|lane| (lane_of(lane), ConstGauge::new(oldest(lane))));
        let help = "How long the oldest job has waited";
        self.family("oldest_wait_seconds", help, MetricType::Gauge, oldest)?;
        let received = |lane: &LaneStats| ConstCounter::new(lane.received_byte_seconds);
        let received = lanes().map(|lane| (lane_of(lane), received(lane)));
        let help = "What the lane has had, over time";
        self.family("received_byte_seconds", help, MetricType::Counter, received)?;
        let overtook = lanes().map(|lane| (lane_of(lane), ConstCounter::new(lane.counts.overtook)));
        let help = "Jobs that passed an earlier one that did not fit";
        self.family("overtakes", help, MetricType::Counter, overtook)
    }

    fn write_ends(&mut self, stats: &Stats) -> Result<(), Error> {
        let ends = stats.lanes.iter().flat_map(|lane| {
            let ends = Ended::ALL.into_iter();
            let count = |ended| ConstCounter::new(lane.counts.of(ended));
            ends.map(move |ended| (lane_and_end(&lane.name, ended), count(ended)))
        });
        self.family("jobs", "Jobs and submissions by how they ended", MetricType::Counter, ends)
    }

    /// To the name of a counter `_total` is added.
    fn family<L: EncodeLabelSet, M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl IntoIterator<Item = (L, M)>,
    ) -> Result<(), Error> {
        let name = format!("admit_{name}");
        let mut metric = self.0.encode_descriptor(&name, help, None, kind)?;
        for (labels, value) in values {
            value.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn histogram(&mut self, name: &str, help: &str, lanes: &[(&str, &Times)]) -> Result<(), Error> {
        let name = format!("admit_{name}");
        let mut metric = self.0.encode_descriptor(&name, help, None, MetricType::Histogram)?;
        for (lane, times) in lanes {
            for (ended, times) in times.iter() {
                let (sum_seconds, buckets) = buckets(times);
                let labels = lane_and_end(lane, ended);
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_histogram::<NoLabelSet>(sum_seconds, times.len(), &buckets, None)?;
            }
        }
        Ok(())
    }
}

fn lane_of(lane: &LaneStats) -> Lane<'_> {
    [("lane", &*lane.name)]
}

fn lane_and_end(lane: &str, ended: Ended) -> LaneAndEnd<'_> {
    let ended = match ended {
        Ended::Completed => "completed",
        Ended::Panicked => "panicked",
        Ended::Cancelled => "cancelled",
        Ended::Aborted => "aborted",
        Ended::Evicted => "evicted",
        Ended::Stalled => "stalled",
        Ended::Expired => "expired",
        Ended::RefusedFull => "refused_full",
        Ended::RefusedNeverFits => "refused_never_fits",
        Ended::RefusedClosed => "refused_closed",
        Ended::RefusedOwnWorker => "refused_own_worker",
    };
    [("lane", lane), ("ended", ended)]
}

/// The sum in seconds, to within the histogram's 1 %, and how many are in each bucket.
fn buckets(times: &Histogram<u64>) -> (f64, Vec<(f64, u64)>) {
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let mut before = 0;
    let bounds = BUCKETS.into_iter().map(|bound| (bound, times.count_between(0, micros(bound))));
    let bounds = bounds.chain([(f64::INFINITY, times.len())]);
    let buckets =
        bounds.map(|(bound, up_to)| (bound, up_to - std::mem::replace(&mut before, up_to)));
    (times.mean() * times.len() as f64 / 1e6, buckets.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Histograms are in microseconds, and what is made of them in seconds.
    #[test]
    fn a_time_is_in_the_bucket_of_its_seconds() {
        let mut times = Histogram::new(2).unwrap();
        for micros in [1_500, 1_500, 3_000_000, 20_000_000] {
            times.record(micros).unwrap();
        }
        let (sum_seconds, buckets) = buckets(&times);
        assert!((sum_seconds / 23.003 - 1.0).abs() < 0.01, "{sum_seconds}");
        let filled: Vec<_> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.002, 2), (4.0, 1), (f64::INFINITY, 1)]);
    }

    #[test]
    fn ends_have_their_names_in_snake_case() {
        for ended in Ended::ALL {
            let mut snake = String::new();
            for letter in format!("{ended:?}").chars() {
                if letter.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(letter.to_ascii_lowercase());
            }
            assert_eq!(lane_and_end("lane", ended), [("lane", "lane"), ("ended", &*snake)]);
        }
    }
}
