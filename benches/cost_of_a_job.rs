//! What a job costs beyond its work, beside a bare channel pool and what people write on tokio.
//!
//! `cargo bench --bench cost_of_a_job` prints two tables of medians in nanoseconds, with the
//! quartiles, and each pool's ratio to the bare channel. The pools take turns within every
//! round, so that they meet the same noise; only the ratios carry over to other machines.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admit::{Budget, Cost, Executor, MIB};

const QUEUE: usize = 1024;
const JOBS: usize = 100_000;
const ROUND_TRIPS: usize = 20_000;
const ROUNDS: usize = 15;
/// What every job declares where bytes are counted: nothing ever waits for them.
const JOB_BYTES: u64 = 4096;
const BUDGET_BYTES: u64 = 1024 * MIB;

/// A pool under test. Its empty jobs hold one number, as any real job holds something: a
/// closure that holds nothing needs no memory, and would let the bare channel do without.
trait Pool: Sync {
    fn submit(&self, job: u64);
    fn round_trip(&self, value: u64) -> u64;
    fn finish(self: Box<Self>);
}

struct Admit(Executor);

impl Admit {
    fn start(workers: usize) -> Box<dyn Pool> {
        let budget = Budget::new(BUDGET_BYTES, 0).expect("no reserve");
        let builder = Executor::builder().workers(workers).budget(budget).capacity(QUEUE);
        Box::new(Admit(builder.build().expect("threads")))
    }
}

impl Pool for Admit {
    fn submit(&self, job: u64) {
        drop(self.0.submit(Cost::new(JOB_BYTES), move || _ = black_box(job)).expect("open"));
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.0.submit(Cost::new(JOB_BYTES), move || value).expect("open").join().expect("value")
    }

    fn finish(self: Box<Self>) {
        self.0.drain().expect("not a worker");
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// A bounded crossbeam channel of boxed closures: no handle, no bytes.
struct Channel {
    work: crossbeam_channel::Sender<Work>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Channel {
    fn start(workers: usize) -> Box<dyn Pool> {
        let (work, jobs) = crossbeam_channel::bounded::<Work>(QUEUE);
        let threads = (0..workers)
            .map(|_| {
                let jobs = jobs.clone();
                std::thread::spawn(move || jobs.iter().for_each(|job| job()))
            })
            .collect();
        Box::new(Channel { work, threads })
    }
}

impl Pool for Channel {
    fn submit(&self, job: u64) {
        self.work.send(Box::new(move || _ = black_box(job))).expect("open");
    }

    fn round_trip(&self, value: u64) -> u64 {
        let (answer, wait) = crossbeam_channel::bounded(1);
        self.work.send(Box::new(move || answer.send(value).expect("waited for"))).expect("open");
        wait.recv().expect("answered")
    }

    fn finish(self: Box<Self>) {
        drop(self.work);
        for thread in self.threads {
            thread.join().expect("no panics");
        }
    }
}

/// `Semaphore::acquire_many_owned` in front of `spawn_blocking`. One permit is one KiB, since a
/// permit that is a byte could not count to 4 GiB.
struct Tokio {
    runtime: tokio::runtime::Runtime,
    budget: Arc<tokio::sync::Semaphore>,
}

const TOKIO_JOB_PERMITS: u32 = (JOB_BYTES / 1024) as u32;

impl Tokio {
    fn start(workers: usize) -> Box<dyn Pool> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(workers)
            .build()
            .expect("threads");
        // As many jobs in flight as the others may queue: spawn_blocking has no bound itself.
        let permits = QUEUE * TOKIO_JOB_PERMITS as usize;
        Box::new(Tokio { runtime, budget: Arc::new(tokio::sync::Semaphore::new(permits)) })
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        let budget = Arc::clone(&self.budget);
        let permit = match Arc::clone(&budget).try_acquire_many_owned(TOKIO_JOB_PERMITS) {
            Ok(permit) => permit,
            Err(_) => {
                self.runtime.block_on(budget.acquire_many_owned(TOKIO_JOB_PERMITS)).expect("open")
            }
        };
        self.runtime.spawn_blocking(move || {
            let value = work();
            drop(permit);
            value
        })
    }
}

impl Pool for Tokio {
    fn submit(&self, job: u64) {
        drop(self.spawn(move || _ = black_box(job)));
    }

    fn round_trip(&self, value: u64) -> u64 {
        let handle = self.spawn(move || value);
        self.runtime.block_on(handle).expect("value")
    }

    fn finish(self: Box<Self>) {
        let all = QUEUE as u32 * TOKIO_JOB_PERMITS;
        drop(self.runtime.block_on(self.budget.acquire_many(all)).expect("open"));
    }
}

type Start = fn(usize) -> Box<dyn Pool>;

const POOLS: [(&str, Start); 3] = [
    ("crossbeam-channel", Channel::start),
    ("admit", Admit::start),
    ("tokio semaphore + spawn_blocking", Tokio::start),
];

fn time_burst(start: Start, workers: usize, producers: usize) -> Duration {
    let pool = start(workers);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| (0..(JOBS / producers) as u64).for_each(|job| pool.submit(job)));
        }
    });
    pool.finish();
    started.elapsed()
}

fn time_round_trips(start: Start, workers: usize) -> Duration {
    let pool = start(workers);
    let started = Instant::now();
    for value in 0..ROUND_TRIPS as u64 {
        assert_eq!(black_box(pool.round_trip(value)), value);
    }
    let elapsed = started.elapsed();
    pool.finish();
    elapsed
}

/// Lower quartile, median and upper quartile, in nanoseconds per job.
fn quartiles(mut samples: Vec<Duration>, jobs: usize) -> [f64; 3] {
    samples.sort();
    [1, 2, 3].map(|quarter| {
        let sample = samples[(samples.len() - 1) * quarter / 4];
        sample.as_nanos() as f64 / jobs as f64
    })
}

fn print_row(label: &str, jobs: usize, time: impl Fn(Start) -> Duration) {
    let mut samples = POOLS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (pool, samples) in POOLS.iter().zip(&mut samples) {
            samples.push(time(pool.1));
        }
    }
    let samples = samples.map(|samples| quartiles(samples, jobs));
    let bare = samples[0][1];
    print!("{label:<22}");
    for [lower, median, upper] in samples {
        print!(" | {median:>7.0} ({lower:>6.0}-{upper:>6.0}) {:>5.2}x", median / bare);
    }
    println!();
}

fn main() {
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    println!("{cpus} CPUs; ns per job: median (quartiles), ratio to the first; {ROUNDS} rounds\n");
    print!("{:<22}", "");
    for (name, _) in POOLS {
        print!(" | {name:<30}");
    }
    println!();
    for producers in [1, 4] {
        for workers in [2, 4, 16] {
            let label = format!("{producers} producers {workers} workers");
            print_row(&label, JOBS, |start| time_burst(start, workers, producers));
        }
    }
    for workers in [2, 16] {
        let label = format!("round trip {workers} workers");
        print_row(&label, ROUND_TRIPS, |start| time_round_trips(start, workers));
    }
}
