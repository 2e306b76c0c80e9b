//! What an overloaded executor gets done for clients that do not wait for ever.
//!
//! `cargo bench --bench goodput` prints one table; `-- --rounds N` sets how often. Jobs of a
//! fixed amount of work come at random times, on average twice as many as can be done, for 5 s. A client
//! gives up after 100 ms. Goodput is the number of jobs that end while their client waits, and capacity what the same
//! workers get done when there is always a job, measured just before.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use admit::{Budget, Cost, Executor, Lane, LaneOptions, MIB};
use clap::Parser;

#[derive(Parser)]
struct Options {
    /// How often each variant is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Given by cargo, and of no meaning here.
    #[arg(long, hide = true)]
    bench: bool,
}

type Failure = Box<dyn std::error::Error>;

const WORKERS: usize = 2;
const CLIENT_WAITS: Duration = Duration::from_millis(100);
const LASTS: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    start_within: Option<Duration>,
    newest_first_after: Option<Duration>,
}

const VARIANTS: [Variant; 4] = [
    Variant { name: "first in, first out", start_within: None, newest_first_after: None },
    Variant {
        name: "the same, to start within 100 ms",
        start_within: Some(CLIENT_WAITS),
        newest_first_after: None,
    },
    Variant {
        name: "the same, to start within 75 ms",
        start_within: Some(Duration::from_millis(75)),
        newest_first_after: None,
    },
    Variant {
        name: "newest first after 20 ms, within 75 ms",
        start_within: Some(Duration::from_millis(75)),
        newest_first_after: Some(Duration::from_millis(20)),
    },
];

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let mut ratios = vec![Vec::new(); VARIANTS.len()];
    let mut job_millis = Vec::new();
    for round in 0..options.rounds {
        for (variant, ratios) in VARIANTS.iter().zip(&mut ratios) {
            let (executor, lane) = executor(variant)?;
            let capacity = capacity(executor.default_lane())?;
            job_millis.push(1000.0 * WORKERS as f64 / capacity);
            ratios.push(goodput(&lane, capacity, round as u64) / capacity);
        }
    }
    println!("2 x overload, jobs of {:.1} ms, clients wait 100 ms", median(job_millis));
    println!("{:<42}  goodput / capacity", "");
    for (variant, ratios) in VARIANTS.iter().zip(ratios) {
        println!("{:<42}  {:>6.2}", variant.name, median(ratios));
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn executor(variant: &Variant) -> Result<(Executor, Lane), Failure> {
    let mut options = LaneOptions::new("clients");
    if let Some(wait) = variant.newest_first_after {
        options = options.newest_first_after(wait);
    }
    let builder = Executor::builder().workers(WORKERS).budget(Budget::new(64 * MIB, 0)?);
    let executor = builder.lane(options).build()?;
    let lane = executor.lane("clients").ok_or("it was built")?;
    let lane = match variant.start_within {
        Some(time) => lane.start_within(time),
        None => lane,
    };
    Ok((executor, lane))
}

/// Always the same; how long it takes is printed.
fn work() {
    for number in 0..20_000_000_u64 {
        black_box(number);
    }
}

/// Jobs a second, with always one that waits.
fn capacity(lane: &Lane) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut handles = std::collections::VecDeque::new();
    let mut done = 0_u64;
    while start.elapsed() < Duration::from_secs(1) {
        handles.push_back(lane.submit(Cost::new(MIB), work)?);
        if handles.len() > 2 * WORKERS {
            handles.pop_front().ok_or("it is there")?.join()?;
            done += 1;
        }
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// Jobs a second that end while their client waits.
fn goodput(lane: &Lane, capacity: f64, seed: u64) -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let in_time = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut next = Duration::ZERO;
    while next < LASTS {
        thread::sleep(next.saturating_sub(start.elapsed()));
        let (came, in_time) = (start + next, Arc::clone(&in_time));
        let job = move || {
            work();
            in_time.fetch_add(u64::from(came.elapsed() <= CLIENT_WAITS), Ordering::Relaxed);
        };
        // A lane that is full sheds.
        if let Ok(handle) = lane.try_submit(Cost::new(MIB), job) {
            drop(handle);
        }
        // Exponential, as the times between calls that know nothing of each other are.
        next += Duration::from_secs_f64(-random.f64().max(1e-9).ln() / (2.0 * capacity));
    }
    in_time.load(Ordering::Relaxed) as f64 / LASTS.as_secs_f64()
}
