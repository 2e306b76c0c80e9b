//! How late an async program's timers are while it does heavy work, by where the work is done and by the
//! number of threads that the async runtime has.
//!
//! `cargo bench --profile release --bench async_workers` prints one table. The runtime, the executor and the work are those of
//! the example `server`: eight clients that ask for one password hash of 64 MiB after the other. A timer is
//! due every 5 ms, whether the one before was late or not, so that a pause makes all those late that
//! fall into it. Every sample is a process of its own, and the variants take turns.

use std::error::Error;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use admit::Executor;
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, sleep_until};

#[allow(dead_code)] // It is the server's, which needs more of it.
#[path = "../examples/server/lanes.rs"]
mod lanes;
#[allow(dead_code)]
#[path = "../examples/server/options.rs"]
mod options;
#[path = "../examples/server/runtime.rs"]
mod runtime;
#[allow(dead_code)]
#[path = "../examples/server/work/mod.rs"]
mod work;

use crate::lanes::Lanes;
use crate::work::hash::Password;

type Failure = Box<dyn Error + Send + Sync>;

/// How late a program's timers are while it does heavy work.
#[derive(Parser)]
struct Options {
    /// Threads of the async runtime
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,32")]
    async_workers: Vec<u16>,

    /// How long a sample takes
    #[arg(long, default_value_t = 4)]
    seconds: u64,

    /// How often each variant is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Measures one variant in this process, with the one number of threads
    #[arg(long, hide = true)]
    variant: Option<Variant>,

    /// Given by cargo, and of no meaning here
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    Idle,
    OnAsyncThreads,
    SpawnBlocking,
    Admit,
}

const VARIANTS: [(Variant, &str); 4] = [
    (Variant::Idle, "no work"),
    (Variant::OnAsyncThreads, "on the async threads"),
    (Variant::SpawnBlocking, "spawn_blocking"),
    (Variant::Admit, "admit"),
];

const CLIENTS: usize = 8;
const REQUEST: &[u8] = br#"{"password": "correct horse", "salt": "battery staple", "log_n": 16}"#;
const TIMER_EVERY: Duration = Duration::from_millis(5);

/// What one process saw.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Sample {
    late_median_ms: f64,
    late_p99_ms: f64,
    late_most_ms: f64,
    hashes_per_second: f64,
    threads: u64,
    peak_mib: u64,
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let lasts = Duration::from_secs(options.seconds);
    if let Some(variant) = options.variant {
        let [async_workers] = options.async_workers[..] else {
            return Err("one variant has one number of threads".into());
        };
        let sample = sample(variant, async_workers, lasts)?;
        println!("{}", serde_json::to_string(&sample)?);
        return Ok(());
    }

    let rows: Vec<(Variant, &str, u16)> = VARIANTS
        .into_iter()
        .flat_map(|(variant, name)| options.async_workers.iter().map(move |n| (variant, name, *n)))
        .collect();
    let mut samples = vec![Vec::new(); rows.len()];
    for _ in 0..options.rounds {
        for ((variant, _, async_workers), samples) in rows.iter().zip(&mut samples) {
            samples.push(measured(*variant, *async_workers, options.seconds)?);
        }
    }
    println!(
        "| work | async threads | timers late: median, 99th percentile, most | hashes/s | threads | peak MiB |"
    );
    println!("|---|---|---|---|---|---|");
    for ((_, name, async_workers), samples) in rows.iter().zip(&samples) {
        let median = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
        println!(
            "| {name} | {async_workers} | {:.1}, {:.1}, {:.0} ms | {:.1} | {:.0} | {:.0} |",
            median(|sample| sample.late_median_ms),
            median(|sample| sample.late_p99_ms),
            samples.iter().map(|sample| sample.late_most_ms).fold(0.0, f64::max),
            median(|sample| sample.hashes_per_second),
            median(|sample| sample.threads as f64),
            median(|sample| sample.peak_mib as f64),
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measured(variant: Variant, async_workers: u16, seconds: u64) -> Result<Sample, Failure> {
    let name = variant.to_possible_value().expect("none is hidden");
    let output = Command::new(std::env::current_exe()?)
        .arg(format!("--variant={}", name.get_name()))
        .arg(format!("--async-workers={async_workers}"))
        .arg(format!("--seconds={seconds}"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn sample(variant: Variant, async_workers: u16, lasts: Duration) -> Result<Sample, Failure> {
    let of_the_server = options::Options::parse_from(["server", "--memory=384MiB"]);
    let executor = match variant {
        Variant::Admit => Some(lanes::executor(&of_the_server)?),
        _ => None,
    };
    runtime::runtime(async_workers)?.block_on(watch(variant, executor.as_ref(), lasts))
}

/// In tasks of their own, as the server's connections are: they run on the runtime's threads, and what
/// `block_on` is given on the program's first.
async fn watch(
    variant: Variant,
    executor: Option<&Executor>,
    lasts: Duration,
) -> Result<Sample, Failure> {
    let lanes = executor.map(Lanes::of).transpose()?;
    let until = Instant::now() + lasts;
    let hashes = Arc::new(AtomicU64::new(0));
    let timers = tokio::spawn(timers(until));
    let clients = if variant == Variant::Idle { 0 } else { CLIENTS };
    let clients: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(client(variant, lanes.clone(), until, Arc::clone(&hashes))))
        .collect();
    let mut late = timers.await?;
    let threads = status("Threads:").unwrap_or_default();
    for client in clients {
        client.await??;
    }

    late.sort_unstable();
    let at = |part: f64| late[((late.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    Ok(Sample {
        late_median_ms: at(0.5),
        late_p99_ms: at(0.99),
        late_most_ms: at(1.0),
        hashes_per_second: hashes.load(Ordering::Relaxed) as f64 / lasts.as_secs_f64(),
        threads,
        peak_mib: status("VmHWM:").unwrap_or_default() >> 10,
    })
}

async fn timers(until: Instant) -> Vec<Duration> {
    let mut late = Vec::new();
    let mut due = Instant::now() + TIMER_EVERY;
    while due < until {
        sleep_until(due).await;
        late.push(due.elapsed());
        due += TIMER_EVERY;
    }
    late
}

async fn client(
    variant: Variant,
    lanes: Option<Lanes>,
    until: Instant,
    hashes: Arc<AtomicU64>,
) -> Result<(), Failure> {
    loop {
        let password = Password::from_json(REQUEST)?;
        let hash = match &lanes {
            Some(lanes) => {
                let (lane, cost) = (lanes.of_hash(password.log_n()), password.cost()?);
                lane.submit_async(cost, move || password.hash()).await?.await?
            }
            None if variant == Variant::SpawnBlocking => {
                spawn_blocking(move || password.hash()).await?
            }
            None => password.hash(),
        };
        if Instant::now() >= until {
            return Ok(());
        }
        assert_eq!(hash.len(), 64);
        hashes.fetch_add(1, Ordering::Relaxed);
        // A connection's next request does not come at once.
        yield_now().await;
    }
}

/// A number of this process, where the system tells it.
fn status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
