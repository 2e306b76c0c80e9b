//! What a run comes to, and what is expected of it.

use std::time::Duration;

use crate::bodies::Bodies;
use crate::client::{Outcome, Record};
use crate::load::{Kind, Wish};
use crate::trial::{Plan, Seen};

const MIB: f64 = (1 << 20) as f64;
/// What is left of two processors by the light requests is for four heavy kinds.
const PROCESSORS: f64 = 2.0;

/// The figures of one run.
#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) died_after: Option<Duration>,
    pub(crate) kills: u64,
    pub(crate) peak_mib: f64,
    /// Of the light requests whose clients waited.
    pub(crate) light_answered: f64,
    pub(crate) light_ms: Latency,
    pub(crate) alone_ms: Latency,
    /// Of those that came more than 0.2 s after the end of the overload.
    pub(crate) afterwards_ms: Latency,
    /// Processors busy with answers that came in time, before the end of the overload, at what those
    /// cost without load.
    pub(crate) useful: f64,
    /// By kind, in answers per second, and in parts of the fair share.
    pub(crate) rates: [f64; 5],
    pub(crate) fair: [f64; 5],
    pub(crate) lost: usize,
    pub(crate) for_gone: Option<f64>,
    pub(crate) hostile: usize,
    pub(crate) hostile_answered: usize,
    /// Uploads that were not admitted, and of those the ones that broke.
    pub(crate) refused_uploads: usize,
    pub(crate) broken_uploads: usize,
    pub(crate) wrong: usize,
    pub(crate) client_cpu: f64,
    /// Of two processors.
    pub(crate) idle: Option<f64>,
    /// Requests that were accepted and lost when it was stopped, of how many.
    pub(crate) stopped: Option<(usize, usize, bool)>,
    pub(crate) first_loss: Option<String>,
}

/// Milliseconds; NaN where there was nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
}

impl Latency {
    fn of<'a>(records: impl Iterator<Item = &'a Record>) -> Latency {
        let mut took: Vec<f64> = records
            .filter(|record| is_right(record))
            .map(|record| record.took.as_secs_f64() * 1e3)
            .collect();
        took.sort_by(f64::total_cmp);
        // The nearest rank.
        let at = |part: f64| {
            let rank = (part * took.len() as f64).ceil() as usize;
            took.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        Latency { median: at(0.5), p99: at(0.99), most: at(1.0) }
    }
}

fn is_right(record: &Record) -> bool {
    matches!(record.outcome, Outcome::Answered { is_right: true, .. })
}

/// An answer that came while the overload lasted: what is still waiting then is not its throughput.
fn came_before(record: &Record, end: Duration) -> bool {
    record.arrival.at + record.took <= end
}

fn is_lost(record: &Record) -> bool {
    matches!(record.outcome, Outcome::Lost(_))
}

fn kind(record: &Record) -> Option<Kind> {
    match record.arrival.wish {
        Wish::Honest { kind, .. } => Some(kind),
        Wish::Hostile(_) => None,
    }
}

impl Result {
    pub(crate) fn of(seen: &Seen, bodies: &Bodies, plan: Plan) -> Result {
        let overload = &seen.overload;
        let light = || overload.iter().filter(|record| kind(record) == Some(Kind::Light));
        let waited = |record: &&Record| {
            !matches!(record.outcome, Outcome::Gone { has_head: false })
                || record.arrival.patience > Duration::from_secs(1)
        };
        // Those that came when it was dead are not in the records.
        let expected_light = plan.per_second * 0.6 * plan.lasts.as_secs_f64();
        let light_waited = light().filter(waited).count() as f64;
        let light_waited = if seen.died_after.is_some() { expected_light } else { light_waited };
        let lasts = plan.lasts.as_secs_f64();
        let useful: f64 = overload
            .iter()
            .filter(|record| is_right(record) && came_before(record, plan.lasts))
            .map(|record| cpu_of(record, bodies))
            .sum::<f64>()
            / lasts;
        let (rates, fair) = rates(overload, bodies, plan);
        let hostile = || overload.iter().filter(|record| kind(record).is_none());
        let uploads = || {
            overload
                .iter()
                .filter(|record| matches!(kind(record), Some(Kind::Gzip | Kind::Picture)))
        };
        let refused =
            |record: &&Record| matches!(record.outcome, Outcome::Answered { status: 400.., .. });
        let broken_uploads = uploads().filter(|record| is_lost(record)).count();
        let first_loss = overload.iter().find_map(|record| match &record.outcome {
            Outcome::Lost(why) => {
                Some(format!("{:?} after {:?}: {why}", record.arrival, record.took))
            }
            _ => None,
        });
        // An honest request is done or refused, and nothing else.
        let is_wrong = |record: &&Record| {
            kind(record).is_some()
                && matches!(record.outcome, Outcome::Answered { status, is_right: false } if status != 503)
        };
        let honest = || seen.alone.iter().chain(overload).chain(&seen.afterwards);
        Result {
            died_after: seen.died_after,
            kills: seen.kills,
            peak_mib: seen.peak_bytes as f64 / MIB,
            light_answered: light().filter(|record| is_right(record)).count() as f64 / light_waited,
            light_ms: Latency::of(light()),
            alone_ms: Latency::of(seen.alone.iter()),
            afterwards_ms: Latency::of(
                seen.afterwards
                    .iter()
                    .filter(|record| record.arrival.at >= plan.lasts + Duration::from_millis(200)),
            ),
            useful,
            rates,
            fair,
            lost: overload.iter().chain(&seen.afterwards).filter(|record| is_lost(record)).count(),
            for_gone: for_gone(seen, bodies),
            hostile: hostile().count(),
            hostile_answered: hostile()
                .filter(|record| {
                    matches!(record.outcome, Outcome::Answered { status: 400..=499 | 503, .. })
                        // Who went away has no answer to give.
                        || record.arrival.patience < Duration::from_secs(1)
                            && matches!(record.outcome, Outcome::Gone { .. })
                })
                .count(),
            refused_uploads: uploads().filter(refused).count() + broken_uploads,
            broken_uploads,
            wrong: honest().filter(is_wrong).count(),
            client_cpu: seen.client_cpu.as_secs_f64() / lasts,
            idle: seen.idle.map(|part| part * PROCESSORS),
            stopped: seen.stopped.as_ref().map(|(records, ended)| {
                let lost = records.iter().filter(|record| is_lost(record)).count();
                let is_accepted =
                    |record: &&Record| !matches!(record.outcome, Outcome::Unconnected);
                (lost, records.iter().filter(is_accepted).count(), *ended)
            }),
            first_loss,
        }
    }
}

/// Answers per second, and what part that is of the kind's fair share: what light requests leave of
/// two processors, in four equal parts.
fn rates(overload: &[Record], bodies: &Bodies, plan: Plan) -> ([f64; 5], [f64; 5]) {
    let lasts = plan.lasts.as_secs_f64();
    let (mut rates, mut fair) = ([0.0; 5], [f64::NAN; 5]);
    let light = mean_cpu(bodies, Kind::Light) * plan.per_second * 0.6;
    let share = (PROCESSORS - light) / 4.0;
    for kind_of in Kind::ALL {
        let right = || {
            overload.iter().filter(move |record| {
                kind(record) == Some(kind_of) && is_right(record) && came_before(record, plan.lasts)
            })
        };
        rates[kind_of as usize] = right().count() as f64 / lasts;
        if kind_of != Kind::Light {
            // What these cost, which are smaller than the mean where small ones get in more easily.
            let cpu = right().fold(0.0, |sum, record| sum + cpu_of(record, bodies));
            fair[kind_of as usize] = cpu / lasts / share;
        }
    }
    (rates, fair)
}

fn cpu_of(record: &Record, bodies: &Bodies) -> f64 {
    match record.arrival.wish {
        Wish::Honest { kind, body } => bodies.of(kind, body).cpu.as_secs_f64(),
        Wish::Hostile(_) => 0.0,
    }
}

fn mean_cpu(bodies: &Bodies, kind: Kind) -> f64 {
    let bodies = bodies.of_kind(kind);
    bodies.iter().map(|body| body.cpu.as_secs_f64()).sum::<f64>() / bodies.len() as f64
}

/// The part of the jobs' processor time that was for clients who had gone before their answer began.
fn for_gone(seen: &Seen, bodies: &Bodies) -> Option<f64> {
    let completed = seen.completed?;
    let (mut all, mut gone) = (0.0, 0.0);
    for kind_of in Kind::ALL {
        let cpu = mean_cpu(bodies, kind_of);
        let records = [&seen.alone, &seen.overload, &seen.afterwards].into_iter().flatten();
        let had_it = |record: &&Record| {
            kind(record) == Some(kind_of)
                && matches!(
                    record.outcome,
                    Outcome::Answered { status: 200, .. } | Outcome::Gone { has_head: true }
                )
        };
        let had_it = records.filter(had_it).count() as f64;
        let jobs = completed.jobs[kind_of as usize] as f64;
        all += jobs * cpu;
        gone += (jobs - had_it).max(0.0) * cpu;
    }
    Some(gone / all)
}
