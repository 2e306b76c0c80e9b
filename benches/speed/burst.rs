//! What a job costs beyond its work: empty jobs, as fast as they can be submitted.

use std::thread;
use std::time::Instant;

use crate::options::Options;
use crate::pools::PoolName;
use crate::sample::{Sample, What};
use crate::{done, table};

const WARM_UP: u64 = 20_000;
const JOBS: u64 = 200_000;

pub(crate) fn print(options: &Options, one_cpu: bool) {
    let title = if one_cpu { "Cost of a job, on one processor" } else { "Cost of a job" };
    table::begin(title, "ns per job | ratio");
    for producers in [1, 4] {
        for workers in [2, 4, 16] {
            let sample = |pool| Sample { what: What::Burst, pool, producers, workers, one_cpu };
            let samples = PoolName::ALL.map(|pool| (pool, sample(pool)));
            table::print(
                &format!("{producers} producers, {workers} workers"),
                options.rounds,
                &samples,
            );
        }
    }
}

pub(crate) fn measure(sample: &Sample) -> Vec<f64> {
    let pool = sample.pool.start(sample.workers);
    pool.submit(0..WARM_UP);
    done::wait_for(WARM_UP);
    let per_producer = JOBS / sample.producers as u64;
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..sample.producers {
            scope.spawn(|| pool.submit(0..per_producer));
        }
    });
    done::wait_for(WARM_UP + per_producer * sample.producers as u64);
    let elapsed = began.elapsed();
    // The process ends now, and the pool with it.
    std::mem::forget(pool);
    vec![elapsed.as_nanos() as f64 / JOBS as f64]
}
