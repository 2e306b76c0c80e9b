//! What an executor decides on by itself, and what it says about it.

use std::sync::mpsc::channel;

use admit::{
    Allocator, Budget, BuildError, Cost, CpuPolicy, Executor, GIB, KIB, LaneOptions, MIB, Override,
    Reserve, WORKERS_VARIABLE, WorkersSource,
};

use crate::child;
use crate::kit::{Blocker, budget};
use crate::watchdog::watch;

#[test]
fn an_executor_that_is_told_nothing_has_workers_and_half_of_the_limit() {
    let _watch = watch!();
    let executor = Executor::builder().build().unwrap();
    let plan = executor.plan();
    assert!(plan.workers.decided >= 4);
    assert_eq!(plan.workers.started, Some(plan.workers.decided));
    assert_eq!(executor.stats().workers, plan.workers.decided);
    assert_eq!(plan.workers.asked, CpuPolicy::automatic());
    assert!(plan.workers.found.is_some());

    assert_eq!(plan.memory.asked, Some(Reserve::half()));
    let limit = plan.memory.found.least().limit().unwrap();
    let ledger = executor.stats().ledger;
    assert_eq!((ledger.capacity_bytes, ledger.reserve_bytes), (limit, limit.div_ceil(2)));
    assert_eq!(executor.submit(Cost::new(MIB), || 7).unwrap().join().unwrap(), 7);

    let line = plan.to_string();
    let source = plan.memory.source.as_ref().unwrap();
    assert!(line.contains("workers (automatic: ") && line.contains(source.as_str()), "{line}");
    assert!(!line.contains('\n'), "{line}");
}

#[test]
fn executors_that_are_told_nothing_share_the_budget_of_the_process() {
    let _watch = watch!();
    let one = Executor::builder().build().unwrap();
    let other = Executor::builder().build().unwrap();
    let blocker = Blocker::on(one.default_lane(), MIB);
    assert!(other.stats().ledger.held_bytes >= MIB);
    let own = Budget::detect_with(Reserve::half()).unwrap();
    assert_eq!(own.ledger().held_bytes, 0);
    blocker.release();
}

#[test]
fn who_gives_numbers_gets_them() {
    let _watch = watch!();
    let policy = CpuPolicy::capped(1);
    for builder in [
        Executor::builder().workers(3).cpu_policy(policy.clone()),
        Executor::builder().cpu_policy(policy).workers(3),
        Executor::builder().cpu_policy(CpuPolicy::fixed(3)),
    ] {
        let executor = builder.budget(budget(MIB)).build().unwrap();
        let plan = executor.plan();
        assert_eq!((plan.workers.decided, plan.workers.source), (3, WorkersSource::Explicit));
        assert!(plan.workers.found.is_none() && plan.memory.asked.is_none());
        assert_eq!(executor.stats().workers, 3);
        assert_eq!(plan.memory.ledger.capacity_bytes, MIB);
    }
}

#[test]
fn a_plan_says_what_is_for_jobs_and_where_a_given_budget_is_above_the_limit() {
    let plan = |capacity, reserve| {
        let budget = Budget::new(capacity, reserve).unwrap();
        Executor::builder().workers(1).budget(budget).plan().unwrap()
    };
    let usual = plan(4 * MIB, MIB);
    assert!(!usual.memory.is_above_limit());
    assert!(usual.to_string().starts_with("1 worker (as given); "), "{usual}");
    assert!(usual.to_string().contains(", 1 MiB of it in reserve, 3 MiB for jobs; "), "{usual}");
    assert!(plan(MIB, MIB).to_string().contains(", nothing for jobs; "));
    // Nobody asked for a reserve, so none is used up.
    assert!(usual.memory.is_reserve_used_up() && !plan(4 * MIB, 0).memory.is_reserve_used_up());

    let above = plan(u64::MAX, 0);
    let limit = above.memory.found.least().limit().unwrap();
    assert!(above.memory.is_above_limit());
    assert!(above.to_string().contains("; the limit is "), "{above}");
    assert!(!plan(limit, 0).memory.is_above_limit());
    assert!(plan(limit + 1, 0).memory.is_above_limit());
}

#[test]
fn no_workers_at_all_are_refused_however_they_are_asked_for() {
    for policy in [CpuPolicy::fixed(0), CpuPolicy::capped(0)] {
        let built = Executor::builder().cpu_policy(policy).budget(budget(1)).build();
        assert!(matches!(built, Err(BuildError::NoWorkers)));
    }
}

#[test]
fn a_plan_that_is_made_beforehand_is_the_one_that_is_carried_out() {
    let _watch = watch!();
    let builder = Executor::builder().budget(budget(MIB)).nice_beyond(2);
    let before = builder.plan().unwrap();
    assert_eq!(before.workers.started, None);
    let executor = builder.build().unwrap();
    let after = executor.plan();
    assert_eq!(after.workers.decided, before.workers.decided);
    assert_eq!(after.workers.nice_beyond, Some(2));
    assert_eq!(after.memory.ledger, before.memory.ledger);
}

/// The test binary's own name, as the variable has to give it.
fn program() -> String {
    let path = std::env::args().next().unwrap();
    std::path::Path::new(&path).file_name().unwrap().to_str().unwrap().to_owned()
}

fn from_environment() -> Result<Executor, BuildError> {
    let policy = CpuPolicy::capped(1).or_environment();
    Executor::builder().cpu_policy(policy).budget(budget(1)).build()
}

#[test]
#[cfg(target_os = "linux")]
fn the_environment_sets_the_workers_of_the_program_it_names_and_not_of_its_copies() {
    let name =
        "plan::the_environment_sets_the_workers_of_the_program_it_names_and_not_of_its_copies";
    if !child::is_child() {
        let value = format!("other=9,{}=3", program());
        return child::run_from_shell(name, &[(WORKERS_VARIABLE, &value)]);
    }
    let executor = from_environment().unwrap();
    let workers = &executor.plan().workers;
    if child::is_grandchild() {
        assert_eq!(workers.environment, Override::Inherited);
        assert!(workers.to_string().contains("meant for the parent"), "{workers}");
        assert_eq!(workers.decided, 1);
    } else {
        assert_eq!((workers.decided, workers.source), (3, WorkersSource::Environment));
        // Who gives a number, or does not ask, is not overruled.
        let fixed = CpuPolicy::fixed(2).or_environment();
        let fixed = Executor::builder().cpu_policy(fixed).budget(budget(1)).build().unwrap();
        assert_eq!(fixed.plan().workers.decided, 2);
        let capped = CpuPolicy::capped(1);
        let capped = Executor::builder().cpu_policy(capped).budget(budget(1)).build().unwrap();
        assert_eq!(capped.plan().workers.environment, Override::Absent);
        assert_eq!(capped.plan().workers.decided, 1);
        child::run_again(name);
    }
}

#[test]
#[cfg(unix)]
fn an_environment_that_names_other_programs_only_is_told() {
    let name = "plan::an_environment_that_names_other_programs_only_is_told";
    if !child::is_child() {
        return child::run_from_shell(name, &[(WORKERS_VARIABLE, "other=9")]);
    }
    let executor = from_environment().unwrap();
    let workers = &executor.plan().workers;
    assert_eq!(workers.environment, Override::NotNamed(program()));
    let expected = format!("; ADMIT_WORKERS has no entry for {:?})", program());
    assert!(workers.to_string().ends_with(&expected), "{workers}");
}

#[test]
#[cfg(unix)]
fn a_bad_value_in_the_environment_is_an_error_also_where_a_number_is_given() {
    let name = "plan::a_bad_value_in_the_environment_is_an_error_also_where_a_number_is_given";
    if !child::is_child() {
        return child::run_from_shell(name, &[(WORKERS_VARIABLE, "16")]);
    }
    let error = from_environment().unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable ADMIT_WORKERS is \"16\", \
         and should be like \"server=16\" or \"server=16,other=4\"",
    );
    let policy = CpuPolicy::automatic().or_environment();
    let built = Executor::builder().workers(2).cpu_policy(policy).budget(budget(1)).build();
    assert!(matches!(built, Err(BuildError::Environment { .. })));
    assert!(Executor::builder().workers(2).budget(budget(1)).build().is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn an_automatic_number_of_workers_makes_do_with_those_that_could_be_started() {
    const STACK_BYTES: usize = 1 << 30;
    if !child::is_child() {
        return child::run(
            "plan::an_automatic_number_of_workers_makes_do_with_those_that_could_be_started",
        );
    }
    let budget = budget(MIB);
    let builder = || Executor::builder().budget(budget.clone()).stack_bytes(STACK_BYTES);
    let mapped = admit::MemoryFacts::detect().mapped_bytes.unwrap();
    child::limit_address_space(mapped + 5 * STACK_BYTES as u64 / 2);

    let executor = builder().build().unwrap();
    let workers = &executor.plan().workers;
    let started = workers.started.unwrap();
    assert!((1..workers.decided).contains(&started), "{workers}");
    assert!(workers.shortfall.is_some());
    assert!(workers.to_string().contains(", and not 4: "), "{workers}");
    assert_eq!(executor.stats().workers, started);
    assert_eq!(executor.stats().free_workers, started);
    let jobs: Vec<_> =
        (0..100).map(|n| executor.submit(Cost::new(1), move || n).unwrap()).collect();
    for (n, job) in jobs.into_iter().enumerate() {
        assert_eq!(job.join().unwrap(), n);
    }

    // Who wants a number gets it or an error; and one worker at least there must be.
    let error = builder().workers(4).build().unwrap_err();
    assert!(matches!(error, BuildError::Workers { asked: 4, .. }), "{error}");
    let none = builder().stack_bytes(4 * STACK_BYTES).build().unwrap_err();
    assert!(matches!(none, BuildError::Workers { started: 0, .. }), "{none}");
    drop(executor);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn freed_blocks_do_not_stay_with_the_allocator_unless_it_is_left_alone() {
    let name = "plan::freed_blocks_do_not_stay_with_the_allocator_unless_it_is_left_alone";
    if !child::is_child() {
        child::run(name);
        return child::run_with(name, &[("ADMIT_TEST_LEAVE_ALONE", "1")]);
    }
    let is_left_alone = std::env::var_os("ADMIT_TEST_LEAVE_ALONE").is_some();
    let builder = Executor::builder().workers(8).budget(budget(128 * MIB));
    let executor = builder.bound_allocator(!is_left_alone).build().unwrap();
    let expected = if is_left_alone {
        Allocator::LeftAlone
    } else {
        Allocator::Bounded { returned_from_bytes: 128 * KIB, most_arenas: None }
    };
    assert_eq!(executor.plan().allocator, expected);

    // What parsers do: many small blocks, of which a few outlive the job.
    let parse = || {
        let blocks: Vec<_> = (0..40_000_usize).map(|n| vec![1_u8; 32 + n * 97 % 480]).collect();
        blocks.into_iter().step_by(5000).collect::<Vec<_>>()
    };
    let rounds = 8;
    let mut kept = Vec::new();
    for _ in 0..rounds {
        let jobs: Vec<_> =
            (0..8).map(|_| executor.submit(Cost::new(14 * MIB), parse).unwrap()).collect();
        kept.extend(jobs.into_iter().map(|job| job.join().unwrap()));
    }
    let retained = executor.stats().retained_bytes.unwrap();
    if is_left_alone {
        assert!(retained > 40 * MIB, "{retained}");
    } else {
        assert!(retained < 40 * MIB, "{retained}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn the_executor_that_asks_for_least_decides_what_the_allocator_returns() {
    if !child::is_child() {
        return child::run(
            "plan::the_executor_that_asks_for_least_decides_what_the_allocator_returns",
        );
    }
    let returned_from = |workers: usize, reserve: u64| {
        let budget = Budget::new(reserve + MIB, reserve).unwrap();
        let builder = Executor::builder().workers(workers).budget(budget);
        let planned = builder.plan().unwrap().allocator;
        let budget = Budget::new(reserve + MIB, reserve).unwrap();
        let builder = Executor::builder().workers(workers).budget(budget);
        assert_eq!(builder.build().unwrap().plan().allocator, planned);
        match planned {
            Allocator::Bounded { returned_from_bytes, .. } => returned_from_bytes,
            other => panic!("{other}"),
        }
    };
    assert_eq!(returned_from(1, GIB), 8 * MIB);
    assert_eq!(returned_from(16, 96 * MIB), 768 * KIB);
    assert_eq!(returned_from(1, GIB), 768 * KIB);
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn where_mappings_are_limited_jobs_can_map_what_they_declared() {
    let name = "plan::where_mappings_are_limited_jobs_can_map_what_they_declared";
    if !child::is_child() {
        return child::run(name);
    }
    let mapped = admit::MemoryFacts::detect().mapped_bytes.unwrap();
    child::limit_address_space(mapped + 300 * MIB);
    let executor = Executor::builder().cpu_policy(CpuPolicy::fixed(16)).build().unwrap();
    let plan = executor.plan();
    assert!(plan.memory.source.as_ref().unwrap().starts_with("RLIMIT_AS"), "{plan}");
    assert!(plan.to_string().contains(", in one arena"), "{plan}");
    let is_mapped = || {
        // Without the limit, the small block would have an arena of 64 MiB mapped for it.
        let small = std::hint::black_box(Box::new(1_u8));
        let mut block = Vec::<u8>::new();
        block.try_reserve_exact(32 * MIB as usize).is_ok() && *small == 1
    };
    let jobs: Vec<_> = (0..64)
        .map(|_| executor.submit(Cost::new(32 * MIB + 64 * KIB), is_mapped).unwrap())
        .collect();
    let all = jobs.into_iter().all(|job| job.join().unwrap());
    assert!(all);
}

#[test]
#[cfg(target_os = "linux")]
fn settings_of_the_one_who_runs_the_program_are_left_as_they_are() {
    let name = "plan::settings_of_the_one_who_runs_the_program_are_left_as_they_are";
    if !child::is_child() {
        child::run_with(name, &[("MALLOC_ARENA_MAX", "2")]);
        return child::run_with(name, &[("GLIBC_TUNABLES", "glibc.malloc.arena_max=2")]);
    }
    let executor = Executor::builder().workers(1).budget(budget(1)).build().unwrap();
    let Allocator::Environment(variable) = &executor.plan().allocator else {
        panic!("{:?}", executor.plan().allocator)
    };
    assert!(variable == "MALLOC_ARENA_MAX" || variable == "GLIBC_TUNABLES");
}

/// The nice value of the calling thread.
#[cfg(target_os = "linux")]
fn nice() -> i64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The name, in parentheses, may have spaces in it; the nice value is the 17th field behind it.
    stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().parse().unwrap()
}

/// The nice values of all workers, in order.
#[cfg(target_os = "linux")]
fn nice_of_workers(executor: &Executor) -> Vec<i64> {
    let workers = executor.stats().workers;
    let together = std::sync::Arc::new(std::sync::Barrier::new(workers));
    let jobs: Vec<_> = (0..workers)
        .map(|_| {
            let together = std::sync::Arc::clone(&together);
            let work = move || {
                together.wait();
                nice()
            };
            executor.submit(Cost::new(0), work).unwrap()
        })
        .collect();
    let mut values: Vec<_> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
    values.sort_unstable();
    values
}

#[test]
#[cfg(target_os = "linux")]
fn workers_beyond_the_first_run_at_nice_10_and_the_others_as_the_program_does() {
    let _watch = watch!();
    let own = nice();
    let low = own.max(10);
    let builder = || Executor::builder().workers(6).budget(budget(1));
    let nice_of = |builder: admit::Builder| nice_of_workers(&builder.build().unwrap());
    assert_eq!(nice_of(builder()), [own, own, own, own, low, low]);
    assert_eq!(nice_of(builder().nice_beyond(1)), [own, low, low, low, low, low]);
    assert_eq!(nice_of(builder().nice_beyond(0)), [low; 6]);
    assert_eq!(nice_of(builder().nice_beyond(None)), [own; 6]);
    assert_eq!(nice(), own);
}

/// A light job on a worker of low priority beside a heavy one on the other would get next to nothing of
/// the processor.
#[test]
#[cfg(target_os = "linux")]
fn jobs_that_have_a_guaranteed_worker_have_it_at_normal_priority_whatever_runs() {
    let _watch = watch!();
    let own = nice();
    let light = LaneOptions::new("light").guaranteed_workers(1);
    let builder = Executor::builder().workers(3).budget(budget(100)).nice_beyond(1);
    let executor = builder.lane(light).build().unwrap();
    let light = executor.lane("light").unwrap();
    // Both rested and busy: the worker that has just ended a job is the first to be asked.
    for _ in 0..100 {
        let (told, heavy) = channel();
        let (let_go, go) = crossbeam_channel::bounded::<()>(0);
        let jobs: Vec<_> = (0..2)
            .map(|_| {
                let (told, go) = (told.clone(), go.clone());
                let work = move || {
                    told.send(nice()).unwrap();
                    go.recv().is_err()
                };
                executor.submit(Cost::new(1), work).unwrap()
            })
            .collect();
        assert_eq!(light.submit(Cost::new(1), nice).unwrap().join().unwrap(), own);
        let heavy: Vec<_> = (0..2).map(|_| heavy.recv().unwrap()).collect();
        assert_eq!(heavy, [own.max(10); 2]);
        drop(let_go);
        for job in jobs {
            job.join().unwrap();
        }
    }
}
