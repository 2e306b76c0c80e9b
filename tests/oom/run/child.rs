//! The process that is on trial.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::BufRead;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use admit::{Allocator, Budget, BuildError, Cost, CpuPolicy, Executor, MIB, Refused, Reserve};

use super::allocator;
use super::options::Child;
use super::plain;
use super::trial::{How, Name};
use super::work::{self, Job};

const WORKERS: usize = 16;
/// How long the consumer of kept results takes for each.
const PAUSE: Duration = Duration::from_millis(5);

type Failure = Box<dyn Error>;

pub(crate) fn run(child: &Child) -> ExitCode {
    die_with_parent();
    if std::os::unix::process::parent_id() != child.parent {
        // It was gone before this process had asked to go with it.
        return ExitCode::FAILURE;
    }
    let entered = child.group.iter().try_for_each(|folder| {
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
    });
    let result = entered.map_err(Failure::from).and_then(|()| carry_out(child));
    match result {
        Ok(()) => {
            println!("done");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// So that no trial outlives the harness, however that ends.
#[allow(unsafe_code)]
fn die_with_parent() {
    // SAFETY: the call takes numbers, and concerns this process alone.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

fn carry_out(child: &Child) -> Result<(), Failure> {
    let batch = |number: u64| work::jobs(child.name, child.scale, child.seed + 1000 * number);
    let jobs = || (0..child.batches).flat_map(batch);
    // What the rest of a program takes. Without it, six jobs of 64 MiB exceed 384 MiB by very little,
    // and only while all six are full, which on a busy machine they never may be.
    let is_tight = child.name == Name::Scrypt64 || child.how == How::Plain6;
    let own_bytes = if is_tight { child.scale.bytes(32 * MIB) } else { 0 };
    let _own = black_box(vec![1_u8; usize::try_from(own_bytes)?]);
    let pause = if child.name == Name::Kept { PAUSE } else { Duration::ZERO };
    let batches = if child.how == How::Idle { 0 } else { usize::try_from(child.batches)? };
    let wanted = batches * batch(0).size_hint().0;
    let done = match child.how {
        // The threads of an executor are part of what is there without jobs.
        How::Idle => submit(&Executor::builder().workers(WORKERS).build()?, std::iter::empty())?,
        // More than the group may have, in the trial about that.
        How::Plain16 if child.name == Name::Pids => plain::pool(64, jobs(), pause),
        How::Plain1 => plain::pool(1, jobs(), pause),
        How::Plain4 => plain::pool(4, jobs(), pause),
        How::Plain6 => plain::pool(6, jobs(), pause),
        How::Plain16 => plain::pool(WORKERS, jobs(), pause),
        How::Tokio => plain::tokio(budget(child.name)?.ledger().admissible_bytes(), jobs(), pause),
        How::Default => submit(&Executor::builder().build()?, jobs())?,
        How::Admit
        | How::LeftAlone
        | How::Unaware
        | How::Jemalloc
        | How::Mimalloc
        | How::JemallocPurging
        | How::MimallocPurging => admit(child, jobs(), pause)?,
    };
    if done == wanted { Ok(()) } else { Err(format!("{done} of {wanted} jobs have ended").into()) }
}

/// Half of the limit in reserve, unless the trial is about less.
fn budget(name: Name) -> Result<Budget, Failure> {
    let reserve = match name {
        Name::Mixed | Name::Spread | Name::Parse | Name::Buffers | Name::Lowered => {
            Reserve::fraction(0.25)
        }
        _ => Reserve::half(),
    };
    Ok(Budget::detect_with(reserve)?)
}

fn admit(
    child: &Child,
    jobs: impl Iterator<Item = Job> + Send,
    pause: Duration,
) -> Result<usize, Failure> {
    if child.name == Name::Pids {
        too_many_workers()?;
    }
    let budget = budget(child.name)?;
    let ledger = budget.ledger();
    println!("budget {}", ledger.admissible_bytes());
    let mut builder = Executor::builder().budget(budget.clone());
    builder = match child.name {
        Name::Pids => builder.cpu_policy(CpuPolicy::automatic()),
        Name::Gzip => builder.workers(WORKERS).waiting_bytes(ledger.admissible_bytes() / 2),
        _ => builder.workers(WORKERS),
    };
    let executor = builder.bound_allocator(child.how != How::LeftAlone).build()?;
    let allocator = &executor.plan().allocator;
    let is_as_expected = match child.how {
        How::LeftAlone => *allocator == Allocator::LeftAlone,
        how if allocator::is_another(how) => *allocator == Allocator::NotGlibc,
        _ => matches!(allocator, Allocator::Bounded { .. }),
    };
    if !is_as_expected {
        return Err(format!("allocator: {allocator}").into());
    }
    match child.name {
        Name::Lowered => lowered(child.how, &executor, &budget, jobs),
        // Nothing is read ahead that there is no room for, results included.
        Name::Kept => {
            let works = executor.map(jobs, |job| job.cost, |job| (job.work)());
            let mut done = 0;
            for result in works {
                drop(result?);
                thread::sleep(pause);
                done += 1;
            }
            Ok(done)
        }
        _ => submit(&executor, jobs),
    }
}

fn submit(executor: &Executor, jobs: impl Iterator<Item = Job>) -> Result<usize, Failure> {
    let mut handles = Vec::new();
    for job in jobs {
        handles.push(executor.submit(job.cost, job.work).map_err(|refused| refused.reason)?);
    }
    let count = handles.len();
    handles.into_iter().try_for_each(|handle| handle.join().map(drop))?;
    Ok(count)
}

/// Small jobs run while the limit is lowered, and large ones follow.
fn lowered(
    how: How,
    executor: &Executor,
    budget: &Budget,
    jobs: impl Iterator<Item = Job>,
) -> Result<usize, Failure> {
    let before = budget.ledger();
    let small = || executor.submit(Cost::new(1 << 20), || vec![1_u8; 1 << 20].len());
    let follow =
        (how == How::Admit).then(|| budget.follow(Duration::from_millis(5))).transpose()?;
    println!("lower");
    let told = thread::spawn(|| std::io::stdin().lock().lines().next());
    while !told.is_finished() {
        small().map_err(|refused| refused.reason)?.join()?;
    }
    told.join().map_err(|_| "the reader panicked")?.ok_or("nobody has lowered the limit")??;
    if follow.is_some() {
        while budget.ledger().capacity_bytes == before.capacity_bytes {
            small().map_err(|refused| refused.reason)?.join()?;
        }
        let admissible = budget.ledger().admissible_bytes();
        match executor.submit(Cost::new(before.admissible_bytes()), || ()) {
            Err(refused) if matches!(refused.reason, Refused::NeverFits { admissible_bytes, .. } if admissible_bytes == admissible) =>
                {}
            _ => return Err("what no longer fits was not refused with its numbers".into()),
        }
    }
    submit(executor, jobs)
}

/// Asks for more workers than the group may have threads.
fn too_many_workers() -> Result<(), Failure> {
    let budget = Budget::new(1 << 20, 0)?;
    let before = budget.ledger();
    match Executor::builder().workers(64).budget(budget.clone()).build() {
        Err(BuildError::Workers { started, asked: 64, .. }) if started < 20 => {}
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("64 workers were started in a group of 20 threads".into()),
    }
    if budget.ledger() != before {
        return Err("a pool that could not be built holds bytes".into());
    }
    // A thread that was joined may still be counted for a moment. One that was left would be for
    // ever, and the harness does not wait that long.
    while !fs::read_to_string("/proc/self/status")?.contains("Threads:\t1\n") {
        thread::yield_now();
    }
    // Half of what is left, and what is left is counted.
    let plan = Executor::builder().budget(budget).plan()?;
    let left = plan.workers.found.as_ref().and_then(|facts| facts.threads_left());
    if left != Some(19) || plan.workers.decided > 9 {
        return Err(format!("{left:?} threads are left, and the plan is {}", plan.workers).into());
    }
    Ok(())
}
