//! Jobs that need more than all admissible bytes.

use admit::{Budget, Cost, JoinError, LaneOptions, Oversize, Refused, Reserve};

use crate::kit::{Blocker, budget, builder, executor};
use crate::watchdog::watch;

const ALONE: Oversize = Oversize::RunAlone { most_bytes: 200 };

#[test]
fn a_job_above_the_budget_is_refused_with_both_numbers_unless_said_otherwise() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let never = |largest| Refused::NeverFits { cost: Cost::new(150), admissible_bytes: largest };
    assert_eq!(executor.submit(Cost::new(150), || ()).unwrap_err().reason, never(100));
    budget.set_oversize(Oversize::RunAlone { most_bytes: 149 });
    assert_eq!(executor.submit(Cost::new(150), || ()).unwrap_err().reason, never(149));
    assert_eq!(executor.check(Cost::new(150)), Err(never(149)));
    budget.set_oversize(ALONE);
    assert_eq!(executor.check(Cost::new(150)), Ok(()));
    executor.submit(Cost::new(150), || ()).unwrap().join().unwrap();
    assert_eq!(budget.ledger().peak_held_bytes, 150);
}

#[test]
fn alone_is_by_who_is_in_flight_and_not_by_what_is_free() {
    let _watch = watch!();
    let (executor, budget) = executor(3, 100);
    budget.set_oversize(ALONE);
    let no_bytes = Blocker::on(executor.default_lane(), 0);
    let permit = budget.acquire(0).unwrap();
    assert_eq!(budget.ledger().free_bytes(), 100);
    let large = executor.submit(Cost::new(150), || ()).unwrap();
    assert_eq!(executor.stats().waiting_jobs, 1);
    let why = executor.stats().lanes[0].why.as_ref().unwrap().to_string();
    assert_eq!(
        why,
        "the job at the head needs 150 bytes, more than the 100 bytes admissible, and runs when \
         nothing else does; 1 running jobs hold 0 bytes and 1 permits hold 0 bytes",
    );
    drop(permit);
    assert_eq!(executor.stats().waiting_jobs, 1);
    no_bytes.release();
    large.join().unwrap();
}

#[test]
fn while_one_runs_alone_only_jobs_of_no_bytes_are_admitted() {
    let _watch = watch!();
    let (executor, budget) = executor(3, 100);
    budget.set_oversize(ALONE);
    let large = Blocker::on(executor.default_lane(), 150);
    executor.submit(Cost::new(0), || ()).unwrap().join().unwrap();
    let small = executor.submit(Cost::new(1), || ()).unwrap();
    assert!(budget.try_acquire(1).is_err());
    assert_eq!(executor.stats().waiting_jobs, 1);
    large.release();
    small.join().unwrap();
}

#[test]
fn one_that_waits_to_run_alone_is_ended_when_bytes_are_guaranteed_to_another_lane() {
    let _watch = watch!();
    let (executor, budget) = executor(2, 100);
    budget.set_oversize(ALONE);
    let permit = budget.acquire(1).unwrap();
    let large = executor.submit(Cost::new(150), || ()).unwrap();
    let lane = executor.add_lane(LaneOptions::new("other").guaranteed_bytes(10)).unwrap();
    match large.join() {
        Err(JoinError::NeverFits { needed_bytes: 150, admissible_bytes: 90 }) => {}
        other => panic!("{other:?}"),
    }
    drop((permit, lane));
}

#[test]
fn a_found_capacity_bounds_what_runs_alone_and_a_given_one_does_not() {
    let _watch = watch!();
    let any = Oversize::RunAlone { most_bytes: u64::MAX };
    let given = budget(100);
    given.set_oversize(any);
    assert_eq!(given.acquire(1 << 60).unwrap().bytes(), 1 << 60);
    let found = Budget::detect_with(Reserve::default()).unwrap();
    found.set_oversize(any);
    let capacity_bytes = found.ledger().capacity_bytes;
    assert!(capacity_bytes > found.ledger().admissible_bytes());
    let executor = builder(1, &found).build().unwrap();
    assert_eq!(executor.check(Cost::new(capacity_bytes)), Ok(()));
    assert!(executor.check(Cost::new(capacity_bytes + 1)).is_err());
}
