//! What keeps the allocator from holding on to memory that no job has, and what it costs.
//!
//! `cargo bench --bench allocator` runs four workloads under each setting, every sample in a
//! process of its own and the settings taking turns, and prints the median time, its ratio to the
//! setting as it comes (median of the ratios within a round), and the median peak of resident
//! memory. `-- --rounds N` sets the number of rounds.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use admit::{Budget, Cost, Executor, KIB, MIB, preset};
use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use scrypt::{Params, scrypt};

const CAPACITY_BYTES: u64 = 384 * MIB;
const SETTING: &str = "ADMIT_BENCH_SETTING";

#[derive(Parser)]
struct Options {
    /// How often each setting is measured on each workload.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How many workers there are. These two are those of the trial in which the process is killed.
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// How much of 384 MiB is in reserve.
    #[arg(long, default_value_t = 96)]
    reserve_mib: u64,
    /// Given by cargo, and of no meaning here.
    #[arg(long, hide = true)]
    bench: bool,
    /// Runs one workload in this process.
    #[arg(long, hide = true)]
    workload: Option<Workload>,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Workload {
    /// 48 scrypt jobs of 16, 64 and 128 MiB.
    Scrypt,
    /// 240 gzip jobs of 64 KiB to 4 MiB.
    Gzip,
    /// 1000 jobs that fill and drop four buffers of 1 to 3 MiB each, and do nothing else: the
    /// worst case for returning blocks to the system.
    Buffers,
    /// 150 jobs that build 12 MiB of blocks of 32 to 512 bytes and drop all but one in 5000: what
    /// parsers do to a heap.
    Nodes,
}

const WORKLOADS: [Workload; 4] =
    [Workload::Scrypt, Workload::Gzip, Workload::Buffers, Workload::Nodes];

/// A setting, and the variables of the environment that make it.
struct Setting {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

const VARIABLES: [&str; 3] =
    ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"];

const AS_IT_COMES: &str = "glibc as it comes";
const TRIM_EACH: &str = "malloc_trim after each job of 1 MiB or more";
const TRIM_EXCESS: &str = "malloc_trim after a job when 64 MiB too much are resident";
const ADMIT: &str = "admit's default";

const SETTINGS: [Setting; 10] = [
    Setting { name: AS_IT_COMES, variables: &[] },
    Setting { name: "M_MMAP_THRESHOLD 128 KiB", variables: &[(VARIABLES[0], "131072")] },
    Setting { name: "M_MMAP_THRESHOLD 1 MiB", variables: &[(VARIABLES[0], "1048576")] },
    Setting {
        name: "M_MMAP_THRESHOLD 8 MiB, M_TRIM_THRESHOLD 16 MiB",
        variables: &[(VARIABLES[0], "8388608"), (VARIABLES[1], "16777216")],
    },
    Setting { name: "M_TRIM_THRESHOLD 128 KiB", variables: &[(VARIABLES[1], "131072")] },
    Setting { name: "M_ARENA_MAX 1", variables: &[(VARIABLES[2], "1")] },
    Setting { name: "M_ARENA_MAX 2", variables: &[(VARIABLES[2], "2")] },
    Setting { name: TRIM_EACH, variables: &[] },
    Setting { name: TRIM_EXCESS, variables: &[] },
    Setting { name: ADMIT, variables: &[] },
];

/// What one process measured.
#[derive(Clone, Copy)]
struct Sample {
    millis: f64,
    peak_mib: f64,
    /// What is resident at the end more than at the beginning.
    kept_mib: f64,
}

fn main() {
    let options = Options::parse();
    if let Some(workload) = options.workload {
        return run(&options, workload);
    }
    for workload in WORKLOADS {
        let mut samples = vec![Vec::new(); SETTINGS.len()];
        for _ in 0..options.rounds {
            for (setting, samples) in SETTINGS.iter().zip(&mut samples) {
                samples.push(sample(&options, setting, workload));
            }
        }
        let ratio = |own: &[Sample], base: &[Sample]| {
            median(own.iter().zip(base).map(|(own, base)| own.millis / base.millis))
        };
        println!(
            "\n{workload:?}: {} rounds, {} workers, {} of 384 MiB in reserve",
            options.rounds, options.workers, options.reserve_mib,
        );
        println!(
            "{:<58} {:>8} {:>8} {:>9} {:>9}",
            "setting", "ms", "ratio", "peak MiB", "kept MiB"
        );
        for (setting, own) in SETTINGS.iter().zip(&samples) {
            println!(
                "{:<58} {:>8.0} {:>8.3} {:>9.0} {:>9.0}",
                setting.name,
                median(own.iter().map(|sample| sample.millis)),
                ratio(own, &samples[0]),
                median(own.iter().map(|sample| sample.peak_mib)),
                median(own.iter().map(|sample| sample.kept_mib)),
            );
        }
        let (own, others) = samples.split_last().expect("there are some");
        let most = others.iter().map(|other| ratio(own, other)).fold(0.0, f64::max);
        println!("{ADMIT} takes {most:.3} of the time of the fastest other, in the same rounds");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn sample(options: &Options, setting: &Setting, workload: Workload) -> Sample {
    let mut command = Command::new(std::env::current_exe().expect("has a path"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    let name = clap::ValueEnum::to_possible_value(&workload).expect("none is hidden");
    command.args(["--workload", name.get_name()]).env(SETTING, setting.name);
    command.args(["--workers", &options.workers.to_string()]);
    command.args(["--reserve-mib", &options.reserve_mib.to_string()]);
    command.envs(setting.variables.iter().copied());
    let output = command.output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [millis, peak_mib, kept_mib] = numbers[..] else {
        panic!("{}: {text}{}", setting.name, String::from_utf8_lossy(&output.stderr));
    };
    Sample { millis, peak_mib, kept_mib }
}

fn run(options: &Options, workload: Workload) {
    let setting = std::env::var(SETTING).unwrap_or_default();
    let budget = Budget::new(CAPACITY_BYTES, options.reserve_mib * MIB).expect("less in reserve");
    let builder = Executor::builder().workers(options.workers).budget(budget.clone());
    let executor = builder.bound_allocator(setting == ADMIT).build().expect("threads");
    let baseline = resident_mib("VmRSS:");
    let trim: Box<dyn Fn(u64) + Sync> = match &*setting {
        TRIM_EACH => Box::new(|bytes| {
            if bytes >= MIB {
                trim();
            }
        }),
        TRIM_EXCESS => Box::new(|_| {
            let held = budget.ledger().held_bytes / MIB;
            if resident_mib("VmRSS:") > baseline + held as f64 + 64.0 {
                trim();
            }
        }),
        _ => Box::new(|_| {}),
    };
    let start = Instant::now();
    executor.scope(|scope| {
        for job in 0..workload.jobs() {
            let (cost, trim) = (workload.cost(job), &trim);
            let work = move || {
                workload.work(job);
                trim(cost.working_bytes());
            };
            drop(scope.submit(cost, work).expect("it fits"));
        }
    });
    let millis = start.elapsed().as_secs_f64() * 1e3;
    let kept_mib = resident_mib("VmRSS:") - baseline;
    println!("{millis:.3} {:.3} {kept_mib:.3}", resident_mib("VmHWM:"));
}

impl Workload {
    fn jobs(self) -> u64 {
        match self {
            Workload::Scrypt => 48,
            Workload::Gzip => 240,
            Workload::Buffers => 1000,
            Workload::Nodes => 150,
        }
    }

    fn log_n(job: u64) -> u8 {
        [14, 16, 17][(job * 7 % 3) as usize]
    }

    fn input_bytes(job: u64) -> u64 {
        64 * KIB * (1 + job * 37 % 64)
    }

    fn cost(self, job: u64) -> Cost {
        match self {
            Workload::Scrypt => preset::scrypt(Workload::log_n(job), 8, 1).expect("valid"),
            Workload::Gzip => {
                let input = Workload::input_bytes(job);
                let output = preset::deflate_bound(input).expect("small");
                let state = preset::deflate(6).expect("valid").working_bytes();
                Cost::new(state + input + output)
            }
            Workload::Buffers => Cost::new(12 * MIB),
            Workload::Nodes => Cost::new(16 * MIB),
        }
    }

    fn work(self, job: u64) {
        match self {
            Workload::Scrypt => {
                let params = Params::new(Workload::log_n(job), 8, 1).expect("valid");
                let mut hash = [0; 32];
                scrypt(b"password", &job.to_le_bytes(), &params, &mut hash).expect("32 bytes");
                black_box(hash);
            }
            Workload::Gzip => {
                let bytes = usize::try_from(Workload::input_bytes(job)).expect("small");
                let input: Vec<u8> = (0..bytes).map(|n| ((n * n) >> 7) as u8).collect();
                let output = Vec::with_capacity(bytes);
                let mut encoder = GzEncoder::new(output, Compression::new(6));
                encoder.write_all(&input).expect("into memory");
                black_box(encoder.finish().expect("into memory"));
            }
            Workload::Buffers => {
                let buffers = (0..4).map(|n| {
                    let bytes = MIB * (1 + (job + n) % 3);
                    vec![n as u8 + 1; usize::try_from(bytes).expect("small")]
                });
                black_box(buffers.collect::<Vec<_>>());
            }
            Workload::Nodes => {
                let sizes = (0..45_000_usize).map(|n| 32 + (n * 97 + 13) % 480);
                let blocks: Vec<_> = sizes.map(|bytes| vec![1_u8; bytes]).collect();
                for (number, block) in blocks.into_iter().enumerate() {
                    if number % 5000 == 2500 {
                        std::mem::forget(block);
                    }
                }
            }
        }
    }
}

fn resident_mib(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    let kib = line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: takes a number; may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
