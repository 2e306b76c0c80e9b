//! The edges of what a job may declare and a lane may hold.

use admit::{Budget, Cost, Executor, GIB, LaneOptions, Limit, MIB, Refused};

use crate::kit::{Blocker, aside, budget, builder, executor, until};
use crate::watchdog::watch;

fn bytes_held_inside(executor: &Executor, budget: &Budget, cost: Cost) -> u64 {
    let budget = budget.clone();
    executor.submit(cost, move || budget.ledger().held_bytes).unwrap().join().unwrap()
}

#[test]
fn a_job_is_charged_what_it_declares_up_to_the_admissible_bytes_and_not_above() {
    let _watch = watch!();
    let reserve = 64 * MIB;
    let budget = Budget::new(6 * GIB, reserve).unwrap();
    let executor = builder(2, &budget).waiting_bytes(MIB).build().unwrap();
    let admissible = 6 * GIB - reserve - MIB;
    for cost in [0, 1, 5 * GIB, admissible].map(Cost::new) {
        assert_eq!(bytes_held_inside(&executor, &budget, cost), cost.working_bytes());
    }
    let cost = Cost::new(admissible - 7).input(7);
    assert_eq!(bytes_held_inside(&executor, &budget, cost), admissible);
    let too_much = [
        Cost::new(admissible + 1),
        Cost::new(u64::MAX),
        Cost::new(0).input(u64::MAX),
        Cost::new(u64::MAX).input(1),
        Cost::new(u64::MAX).input(u64::MAX),
        Cost::new(admissible).input(1),
    ];
    for cost in too_much {
        let refused = executor.submit(cost, || ()).map(drop).unwrap_err();
        assert_eq!(refused.reason, Refused::NeverFits { cost, admissible_bytes: admissible });
        assert!(refused.to_string().contains("never fits"));
    }
}

#[test]
fn the_whole_range_of_u64_can_be_admitted() {
    let _watch = watch!();
    let (executor, budget) = executor(2, u64::MAX);
    assert_eq!(bytes_held_inside(&executor, &budget, Cost::new(u64::MAX)), u64::MAX);
    let cost = Cost::new(u64::MAX - 1).input(1);
    assert_eq!(bytes_held_inside(&executor, &budget, cost), u64::MAX);
    let cost = Cost::new(u64::MAX).input(1);
    assert!(matches!(
        executor.try_submit(cost, || ()).map(drop).unwrap_err().reason,
        Refused::NeverFits { admissible_bytes: u64::MAX, .. }
    ));
}

#[test]
fn a_job_of_no_bytes_runs_when_nothing_is_free_and_when_nothing_is_admissible() {
    let _watch = watch!();
    let (executor, budget) = executor(2, 10);
    let blocker = Blocker::on(executor.default_lane(), 10);
    executor.submit(Cost::new(0), || ()).unwrap().join().unwrap();
    budget.resize(5, 5);
    assert_eq!(budget.ledger().admissible_bytes(), 0);
    executor.submit(Cost::new(0), || ()).unwrap().join().unwrap();
    drop(budget.try_acquire(0).unwrap());
    assert!(executor.try_submit(Cost::new(1), || ()).is_err());
    blocker.release();
}

#[test]
fn a_lane_without_capacity_hands_over_to_a_worker_and_accepts_at_once_only_with_a_free_one() {
    let _watch = watch!();
    let executor = builder(1, &budget(10)).capacity(0).build().unwrap();
    let lane = executor.default_lane();
    let full = Refused::Full(Limit::LaneJobs { waiting: 0, limit: 0 });
    for _ in 0..100 {
        until(|| executor.stats().free_workers == 1);
        lane.try_submit(Cost::new(10), || ()).unwrap().join().unwrap();
    }
    let blocker = Blocker::on(lane, 4);
    let refused = lane.try_submit(Cost::new(1), || ()).map(drop).unwrap_err();
    assert_eq!(refused.reason, full);
    assert!(refused.to_string().contains("no worker is free"));
    let submitted = {
        let lane = lane.clone();
        aside(move || lane.submit(Cost::new(7), || 7).unwrap())
    };
    until(|| executor.stats().lanes[0].blocked_submits == 1);
    assert_eq!((executor.stats().waiting_jobs, executor.stats().running_jobs), (0, 1));
    assert!(submitted.try_recv().is_err());
    blocker.release();
    assert_eq!(submitted.recv().unwrap().join().unwrap(), 7);

    // A free worker is of no use without the bytes.
    let executor = builder(2, &budget(10)).capacity(0).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 4);
    let refused = executor.try_submit(Cost::new(7), || ()).map(drop).unwrap_err();
    assert_eq!(refused.reason, full);
    executor.try_submit(Cost::new(6), || ()).unwrap().join().unwrap();
    blocker.release();
}

#[test]
fn input_larger_than_its_lane_may_hold_is_handed_over_and_keeps_its_place() {
    let _watch = watch!();
    let lane = LaneOptions::new("narrow").input_bytes(5);
    let executor = builder(1, &budget(100)).waiting_bytes(10).lane(lane).build().unwrap();
    let narrow = executor.lane("narrow").unwrap();
    for input in [6, 10, 11, 90] {
        let job = narrow.try_submit(Cost::new(0).input(input), || ());
        job.unwrap().join().unwrap();
        until(|| executor.stats().free_workers == 1);
    }
    let blocker = Blocker::on(executor.default_lane(), 1);
    let refused = narrow.try_submit(Cost::new(0).input(6), || ()).map(drop).unwrap_err();
    let limit = Limit::LaneInputBytes { input_bytes: 6, waiting_bytes: 0, limit_bytes: 5 };
    assert_eq!(refused.reason, Refused::Full(limit));
    let large = {
        let narrow = narrow.clone();
        aside(move || narrow.submit(Cost::new(0).input(50), || 50).unwrap().join().unwrap())
    };
    until(|| executor.stats().lanes[1].blocked_submits == 1);
    let limit = Limit::LaneInputBytes { input_bytes: 50, waiting_bytes: 0, limit_bytes: 5 };
    let lanes = executor.stats().lanes;
    assert_eq!((lanes[0].blocked_by, lanes[1].blocked_by), (None, Some(limit)));
    // It would fit into the lane, but came later.
    let refused = narrow.try_submit(Cost::new(1), || ()).map(drop).unwrap_err();
    assert!(matches!(refused.reason, Refused::Full(_)));
    assert_eq!(executor.stats().waiting_input_bytes, 0);
    blocker.release();
    assert_eq!(large.recv().unwrap(), 50);
}

#[test]
fn lanes_share_the_waiting_bytes_in_the_order_of_their_submissions() {
    let _watch = watch!();
    let executor =
        builder(1, &budget(100)).waiting_bytes(10).lane(LaneOptions::new("other")).build().unwrap();
    let other = executor.lane("other").unwrap();
    let blocker = Blocker::on(executor.default_lane(), 1);
    let first = other.submit(Cost::new(0).input(8), || ()).unwrap();
    let large = {
        let lane = executor.default_lane().clone();
        aside(move || lane.submit(Cost::new(0).input(9), || ()).unwrap())
    };
    until(|| executor.stats().lanes[0].blocked_submits == 1);
    // Two bytes are left, and somebody came first who needs them.
    let small = {
        let other = other.clone();
        aside(move || other.submit(Cost::new(0).input(1), || ()).unwrap())
    };
    until(|| executor.stats().lanes[1].blocked_submits == 1);
    assert!(first.cancel());
    let large = large.recv().unwrap();
    let small = small.recv().unwrap();
    assert_eq!(executor.stats().waiting_input_bytes, 10);
    blocker.release();
    large.join().unwrap();
    small.join().unwrap();
}
