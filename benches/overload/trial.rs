//! One run of one service: alone with light requests, overloaded, left alone again, and stopped while it is
//! overloaded.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::bodies::Bodies;
use crate::client::{Record, visit};
use crate::cpu_time::{self, Machine};
use crate::load::{self, Arrival};
use crate::scrape::{self, Completed};
use crate::served::Served;

type Failure = Box<dyn std::error::Error>;

pub(crate) const ALONE: Duration = Duration::from_secs(4);
const AFTERWARDS: Duration = Duration::from_secs(3);
const UNTIL_STOPPED: Duration = Duration::from_secs(3);
const AFTER_STOPPED: Duration = Duration::from_secs(1);
/// More than the service takes to drain, by its options.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) per_second: f64,
    pub(crate) lasts: Duration,
    pub(crate) seed: u64,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) alone: Vec<Record>,
    pub(crate) overload: Vec<Record>,
    /// Light requests from the end of the overload on.
    pub(crate) afterwards: Vec<Record>,
    /// When the service died, from the beginning of the overload on.
    pub(crate) died_after: Option<Duration>,
    pub(crate) peak_bytes: u64,
    pub(crate) kills: u64,
    /// Jobs that the service has run, where it is there to say.
    pub(crate) completed: Option<Completed>,
    pub(crate) client_cpu: Duration,
    /// The part of the machine's time during the overload that nobody used.
    pub(crate) idle: Option<f64>,
    /// The requests of the last phase, and whether the service ended well.
    pub(crate) stopped: Option<(Vec<Record>, bool)>,
}

pub(crate) async fn run(
    served: &mut Served,
    bodies: &Arc<Bodies>,
    plan: Plan,
) -> Result<Seen, Failure> {
    let Plan { per_second, lasts, seed } = plan;
    let alone = visits(served, bodies, load::light(per_second, ALONE, seed), None).await?;

    let mut overload = load::overload(per_second, lasts, seed);
    let crowd = overload.len();
    let mut afterwards = load::light(per_second, AFTERWARDS, seed + 1);
    for arrival in &mut afterwards {
        arrival.at += lasts;
    }
    overload.append(&mut afterwards);
    let cpu_before = cpu_time::of_process();
    let idle = tokio::spawn(idle_for(lasts));
    let mut overloaded = visits(served, bodies, overload, None).await?;
    let client_cpu = cpu_time::of_process() - cpu_before;
    let afterwards = overloaded.records.split_off(crowd.min(overloaded.records.len()));

    let mut seen = Seen {
        alone: alone.records,
        overload: overloaded.records,
        afterwards,
        died_after: overloaded.died_after,
        peak_bytes: 0,
        kills: 0,
        completed: None,
        client_cpu,
        idle: None,
        stopped: None,
    };
    if seen.died_after.is_none() {
        seen.idle = idle.await?;
        seen.completed = scrape::completed(served.address).await?;
        let last = load::overload(per_second, UNTIL_STOPPED + AFTER_STOPPED, seed + 2);
        let last = visits(served, bodies, last, Some(UNTIL_STOPPED)).await?;
        let status = served.end_within(ENDS_WITHIN).await?;
        seen.stopped = Some((last.records, status.is_some_and(|status| status.success())));
    }
    seen.peak_bytes = served.group.peak_bytes()?;
    seen.kills = served.group.kills()?;
    Ok(seen)
}

async fn idle_for(time: Duration) -> Option<f64> {
    let before = Machine::now()?;
    tokio::time::sleep(time).await;
    Some(Machine::now()?.idle_since(before))
}

struct Visits {
    /// In the order of arrival; those that came when the service was dead are missing.
    records: Vec<Record>,
    died_after: Option<Duration>,
}

/// All clients, each at its time. The service is told to stop after a while, if so asked.
async fn visits(
    served: &mut Served,
    bodies: &Arc<Bodies>,
    arrivals: Vec<Arrival>,
    stopped_after: Option<Duration>,
) -> Result<Visits, Failure> {
    let begin = Instant::now() + Duration::from_millis(50);
    let address = served.address;
    let mut clients = JoinSet::new();
    let mut died_after = None;
    let mut is_stopped = false;
    for (number, arrival) in arrivals.into_iter().enumerate() {
        if !is_stopped && stopped_after.is_some_and(|after| arrival.at >= after) {
            served.terminate()?;
            is_stopped = true;
        }
        tokio::select! {
            biased;
            () = sleep_until(begin + arrival.at) => {}
            died = served.died(), if !is_stopped => {
                died?;
                died_after = Some(begin.elapsed());
                break;
            }
        }
        let bodies = Arc::clone(bodies);
        clients.spawn(async move { (number, visit(address, bodies, arrival, begin).await) });
    }
    let mut records = clients.join_all().await;
    if died_after.is_none() && !is_stopped && served.has_ended()?.is_some() {
        died_after = Some(begin.elapsed());
    }
    records.sort_by_key(|(number, _)| *number);
    Ok(Visits { records: records.into_iter().map(|(_, record)| record).collect(), died_after })
}
