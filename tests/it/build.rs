//! What cannot be built says why, and leaves nothing behind.

use admit::{Budget, BuildError, LaneOptions};

use crate::kit::{budget, builder};
use crate::watchdog::watch;

#[test]
fn numbers_that_do_not_add_up_are_refused_and_the_budget_stays_as_it_was() {
    let _watch = watch!();
    assert!(matches!(
        Budget::new(9, 10),
        Err(BuildError::ReserveAboveCapacity { reserve_bytes: 10, capacity_bytes: 9 })
    ));
    let budget = Budget::new(100, 10).unwrap();
    let before = budget.ledger();
    let two = || builder(2, &budget);
    assert!(matches!(two().workers(0).build(), Err(BuildError::NoWorkers)));
    assert!(matches!(builder(0, &budget).build(), Err(BuildError::NoWorkers)));
    assert!(matches!(two().thread_name("a\0b").build(), Err(BuildError::ThreadName)));
    for twice in ["default", "again"] {
        let lanes = two().lane(LaneOptions::new(twice)).lane(LaneOptions::new(twice));
        assert!(matches!(lanes.build(), Err(BuildError::LaneTwice { lane }) if lane == twice));
    }
    assert!(matches!(
        two().waiting_bytes(91).build(),
        Err(BuildError::WaitingAboveBudget { waiting_limit_bytes: 91, available_bytes: 90 })
    ));
    assert!(matches!(
        two().waiting_bytes(u64::MAX).build(),
        Err(BuildError::WaitingAboveBudget { .. })
    ));
    assert!(matches!(
        two().waiting_bytes(5).lane(LaneOptions::new("wide").input_bytes(6)).build(),
        Err(BuildError::LaneAboveWaiting { lane_bytes: 6, waiting_limit_bytes: 5, .. })
    ));
    assert!(matches!(
        two().input_bytes(1).build(),
        Err(BuildError::LaneAboveWaiting { lane, .. }) if lane == "default"
    ));
    assert_eq!(budget.ledger(), before);

    let all = two().waiting_bytes(90).build().unwrap();
    assert!(matches!(
        two().waiting_bytes(1).build(),
        Err(BuildError::WaitingAboveBudget { available_bytes: 0, .. })
    ));
    drop(all);
    assert_eq!(budget.ledger(), before);
}

#[test]
fn stacks_that_no_thread_can_have_are_refused_and_leave_no_thread() {
    let _watch = watch!();
    let budget = budget(100);
    let before = budget.ledger();
    let sizes = [usize::MAX, usize::MAX - 4095, usize::MAX / 2, usize::MAX / 4, usize::MAX / 8];
    for bytes in sizes {
        let built = builder(3, &budget).waiting_bytes(10).stack_bytes(bytes).build();
        match built.expect_err("no such stack") {
            BuildError::Workers { started: 0, asked: 3, .. } => {}
            other => panic!("{bytes}: {other}"),
        }
        assert_eq!(budget.ledger(), before, "{bytes}");
    }
}

#[cfg(target_os = "linux")]
mod short_of_memory {
    use admit::{BuildError, MIB};

    use crate::child;
    use crate::kit::{budget, builder, threads_named, until};
    use crate::watchdog::watch;

    #[test]
    fn a_build_that_cannot_start_all_workers_says_how_many_and_leaves_none() {
        let _watch = watch!();
        if !child::is_child() {
            return child::run(
                "build::short_of_memory::a_build_that_cannot_start_all_workers_says_how_many_and_leaves_none",
            );
        }
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
        // Room for a few large stacks, and much beside them for everything else.
        child::limit_address_space(pages * 4096 + 2200 * MIB);
        let budget = budget(100);
        let before = budget.ledger();
        let built = builder(10_000, &budget)
            .waiting_bytes(10)
            .stack_bytes(256 * MIB as usize)
            .thread_name("few")
            .build();
        let error = built.expect_err("no room for so many stacks");
        let text = error.to_string();
        let BuildError::Workers { started, asked: 10_000, source } = error else {
            panic!("{text}");
        };
        assert!((1..=9).contains(&started), "{started} started");
        assert!(text.starts_with(&format!("only {started} of 10000 workers")), "{text}");
        assert!(text.ends_with(&source.to_string()));
        until(|| threads_named("few") == 0);
        assert_eq!(budget.ledger(), before);
        let executor = builder(1, &budget).build().unwrap();
        let job = executor.submit(admit::Cost::new(100), || 5).unwrap();
        assert_eq!(job.join().unwrap(), 5);
    }
}

#[test]
fn more_workers_than_are_safe_are_refused_before_any_is_started() {
    let _watch = watch!();
    let error = builder(usize::MAX, &budget(100)).build().unwrap_err();
    let text = format!("{} workers are too many: at most 16384 are allowed", usize::MAX);
    assert_eq!(error.to_string(), text);
}
