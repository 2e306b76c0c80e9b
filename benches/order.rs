//! What the order of admission does to a batch, and to small jobs beside large ones.
//!
//! `cargo bench --bench order` prints two tables. Every sample is a process of its own, and the
//! variants take turns; `-- --rounds N` sets how often.
//!
//! - A tight batch: 48 scrypt jobs of 16, 64 and 128 MiB in a budget of 160 MiB, where two of
//!   128 MiB do not fit together, nor one of them beside one of 64. Its time is given as a multiple
//!   of the lower bound of the same run: the larger of all CPU time divided by the processors, and
//!   the time of the best packing, which is that of the jobs of 128 MiB one by one and those of 64
//!   two by two.
//! - Light jobs of 2 ms, one every 20 ms, beside heavy ones of 400 ms that always wait: how long
//!   it takes from the submission of a light one to its end.

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use admit::{Budget, Cost, Executor, Lane, LaneOptions, MIB, Overtaking, preset};
use clap::{Parser, ValueEnum};
use scrypt::{Params, scrypt};

#[derive(Parser)]
struct Options {
    /// How often each variant is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Given by cargo, and of no meaning here.
    #[arg(long, hide = true)]
    bench: bool,
    /// Measures one variant in this process.
    #[arg(long, hide = true)]
    variant: Option<Variant>,
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    Fifo,
    Most8,
    Most24,
    OneLane,
    TwoLanes,
    Guaranteed,
}

const BATCH: [(Variant, &str); 3] = [
    (Variant::Fifo, "first in, first out"),
    (Variant::Most8, "at most 8 pass"),
    (Variant::Most24, "at most 24 pass"),
];
const LIGHT: [(Variant, &str); 3] = [
    (Variant::OneLane, "one lane, 2 workers"),
    (Variant::TwoLanes, "a lane each, 2 workers"),
    (Variant::Guaranteed, "a lane each, 3 workers, 1 guaranteed"),
];

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    match options.variant {
        Some(variant) if BATCH.iter().any(|(other, _)| *other == variant) => {
            batch(variant, options.seed)
        }
        Some(variant) => light(variant),
        None => compare(&options),
    }
}

fn compare(options: &Options) -> Result<(), Failure> {
    println!("tight batch                              time/bound  longest wait s  passed");
    table(options, &BATCH, |columns| {
        format!("{:>10.3}  {:>14.2}  {:>6}", columns[0], columns[1], columns[2])
    })?;
    println!("\nlight jobs beside heavy ones           median ms    99th ms    heavy jobs/s");
    table(options, &LIGHT, |columns| {
        format!("{:>9.1}  {:>9.1}  {:>12.2}", columns[0], columns[1], columns[2])
    })
}

/// Medians over the rounds.
fn table(
    options: &Options,
    variants: &[(Variant, &str)],
    show: impl Fn(&[f64]) -> String,
) -> Result<(), Failure> {
    let mut samples = vec![Vec::new(); variants.len()];
    for round in 0..options.rounds {
        for (at, (variant, _)) in variants.iter().enumerate() {
            samples[at].push(sample(*variant, round as u64)?);
        }
    }
    for ((_, name), samples) in variants.iter().zip(samples) {
        let column = |at: usize| median(samples.iter().map(|sample| sample[at]).collect());
        println!("{name:<40} {}", show(&[column(0), column(1), column(2)]));
    }
    Ok(())
}

fn sample(variant: Variant, seed: u64) -> Result<[f64; 3], Failure> {
    let name = variant.to_possible_value().ok_or("hidden")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--variant", name.get_name(), "--seed", &seed.to_string()]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| "three numbers were expected".into())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn batch(variant: Variant, seed: u64) -> Result<(), Failure> {
    let budget = Budget::new(208 * MIB, 48 * MIB)?;
    let most = match variant {
        Variant::Most8 => 8,
        Variant::Most24 => 24,
        _ => 0,
    };
    budget.set_overtaking(Overtaking::at_most(most));
    let executor = Executor::builder().workers(4).budget(budget).build()?;
    let mut sizes = [[14_u8; 16], [16; 16], [17; 16]].concat();
    fastrand::Rng::with_seed(seed).shuffle(&mut sizes);
    let start = Instant::now();
    let mut handles = Vec::new();
    for log_n in sizes {
        let job = move || {
            let (waited, params) = (start.elapsed(), Params::new(log_n, 8, 1).expect("valid"));
            let mut hash = [0; 32];
            scrypt(b"password", b"salt", &params, &mut hash).expect("32 bytes");
            black_box(hash);
            (log_n, waited, start.elapsed() - waited)
        };
        handles.push(executor.submit(preset::scrypt(log_n, 8, 1)?, job)?);
    }
    let (mut packed, mut longest_wait) = (Duration::ZERO, Duration::ZERO);
    for handle in handles {
        let (log_n, waited, ran) = handle.join()?;
        longest_wait = longest_wait.max(waited);
        packed += match log_n {
            17 => ran,
            16 => ran / 2,
            _ => Duration::ZERO,
        };
    }
    let time = start.elapsed().as_secs_f64();
    let processors = thread::available_parallelism()?.get() as f64;
    let bound = f64::max(cpu_seconds()? / processors, packed.as_secs_f64());
    let overtook = executor.stats().counts.overtook;
    println!("{} {} {overtook}", time / bound, longest_wait.as_secs_f64());
    Ok(())
}

/// The CPU time of this process: the 14th and 15th field, in ticks of 10 ms.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let behind_name = stat.rsplit(") ").next().ok_or("no name")?;
    let ticks = behind_name.split(' ').skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

/// Works for so long, if nobody else does.
fn work(time: Duration) {
    // Calibrated where nothing else runs: a busy job must not stop early because it had to share.
    static ROUNDS_PER_MS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let spin = |rounds: u64| (0..rounds).fold(0_u64, |sum, n| black_box(sum.wrapping_mul(31) + n));
    let per_ms = *ROUNDS_PER_MS.get_or_init(|| {
        let start = Instant::now();
        spin(20_000_000);
        (20_000_000.0 / (start.elapsed().as_secs_f64() * 1e3)) as u64
    });
    spin(per_ms * u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
}

fn light(variant: Variant) -> Result<(), Failure> {
    work(Duration::ZERO);
    let lanes = || [LaneOptions::new("light"), LaneOptions::new("heavy")];
    let builder = Executor::builder().budget(Budget::new(256 * MIB, 0)?);
    let executor = match variant {
        Variant::OneLane => builder.workers(2),
        Variant::Guaranteed => {
            let [light, heavy] = lanes();
            builder.workers(3).lane(light.guaranteed_workers(1)).lane(heavy)
        }
        _ => lanes().into_iter().fold(builder.workers(2), |builder, lane| builder.lane(lane)),
    };
    let executor = executor.build()?;
    let lane = |name| executor.lane(name).unwrap_or_else(|| executor.default_lane().clone());
    let (light, heavy) = (lane("light"), lane("heavy"));
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let (mut latencies, heavy_jobs) = thread::scope(|scope| {
        let supply = scope.spawn(|| supply(&heavy, &is_over));
        let latencies = measure(&light);
        is_over.store(true, Ordering::Relaxed);
        (latencies, supply.join().unwrap_or(0))
    });
    let per_second = heavy_jobs as f64 / start.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
    println!("{} {} {per_second}", at(0.5), at(0.99));
    Ok(())
}

/// Keeps four heavy jobs in the lane or running, and says how many ended.
fn supply(lane: &Lane, is_over: &AtomicBool) -> u64 {
    let mut jobs = std::collections::VecDeque::new();
    let mut ended = 0;
    while !is_over.load(Ordering::Relaxed) {
        while jobs.len() < 4 {
            let job = lane.submit(Cost::new(8 * MIB), || work(Duration::from_millis(400)));
            jobs.extend(job.ok());
        }
        ended += u64::from(jobs.pop_front().is_some_and(|job| job.join().is_ok()));
    }
    ended
}

/// From submission to end, in ms, of light jobs that come at their own times.
fn measure(lane: &Lane) -> Vec<f64> {
    let (send, receive) = channel();
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(20));
        let (send, start) = (send.clone(), Instant::now());
        let job = move || {
            work(Duration::from_millis(2));
            let _ = send.send(start.elapsed().as_secs_f64() * 1e3);
        };
        drop(lane.submit(Cost::new(MIB), job));
    }
    drop(send);
    receive.into_iter().collect()
}
