//! What it takes to have a value from a pool that does nothing else.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use crate::options::Options;
use crate::pools::PoolName;
use crate::sample::{Sample, What};
use crate::table;

const TRIPS: u64 = 20_000;

pub(crate) fn print(options: &Options) {
    table::begin("Round trip", "ns | ratio | CPU time per wall time");
    for workers in [2, 16] {
        let sample = |what, pool| Sample { what, pool, producers: 1, workers, one_cpu: false };
        let samples = PoolName::ALL.map(|pool| (pool, sample(What::RoundTrip, pool)));
        table::print(&format!("{workers} workers"), options.rounds, &samples);
    }
    table::begin("Round trip from a task of tokio's", "ns | ratio | CPU time per wall time");
    for workers in [2, 16] {
        let sample = |pool| Sample {
            what: What::AsyncRoundTrip,
            pool,
            producers: 1,
            workers,
            one_cpu: false,
        };
        let samples = PoolName::ASYNC.map(|pool| (pool, sample(pool)));
        table::print(&format!("{workers} workers"), options.rounds, &samples);
    }
}

pub(crate) fn measure(sample: &Sample) -> Vec<f64> {
    let pool = sample.pool.start(sample.workers);
    let trip = |value| assert_eq!(black_box(pool.round_trip(value)), value);
    (0..TRIPS / 10).for_each(trip);
    let figures = timed(|| (0..TRIPS).for_each(trip));
    std::mem::forget(pool);
    figures
}

pub(crate) fn measure_async(sample: &Sample) -> Vec<f64> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).max_blocking_threads(sample.workers);
    let runtime = runtime.build().expect("threads");
    let pool = sample.pool.start_async(sample.workers);
    let task = runtime.spawn(async move {
        for value in 0..TRIPS / 10 {
            assert_eq!(pool.round_trip(value).await, value);
        }
        let before = (Instant::now(), cpu_nanos());
        for value in 0..TRIPS {
            assert_eq!(black_box(pool.round_trip(value).await), value);
        }
        let figures = since(before);
        std::mem::forget(pool);
        figures
    });
    runtime.block_on(task).expect("no panics")
}

fn timed(run: impl FnOnce()) -> Vec<f64> {
    let before = (Instant::now(), cpu_nanos());
    run();
    since(before)
}

fn since((began, before): (Instant, u64)) -> Vec<f64> {
    let wall = began.elapsed().as_nanos() as f64;
    vec![wall / TRIPS as f64, (cpu_nanos() - before) as f64 / wall]
}

/// What all threads of the process have had of the processors.
fn cpu_nanos() -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("the threads of this process");
    let nanos = threads.map(|thread| {
        let path = thread.expect("a thread").path().join("schedstat");
        let text = fs::read_to_string(path).expect("the times of a thread");
        text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).expect("nanoseconds")
    });
    nanos.sum()
}
