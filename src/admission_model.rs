//! The admission state machine against an obvious model, over random histories.

mod check;
mod counts;
mod ending;
mod lines;
mod model;
mod op;
mod order;
mod pair;
mod places;
mod shares;
mod steps;
mod workers;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use self::op::{Op, Patience};
use self::pair::Pair;
use crate::accounts::Terms;
use crate::counts::Ended;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;

fn attach() -> impl Strategy<Value = Op> {
    let lane = (prop_oneof![2 => 0..4_usize, 1 => Just(100)], 0..4_u64, terms());
    let lanes = prop::collection::vec(lane, 1..4);
    (0..12_u64, lanes, 0..5_u8).prop_map(|(limit, mut lanes, workers)| {
        // The surface sees to it that a worker is left over.
        let mut left = usize::from(workers).saturating_sub(1);
        for (_, less, terms) in &mut lanes {
            *less = limit.saturating_sub(*less);
            terms.guaranteed_workers = terms.guaranteed_workers.min(left);
            left -= terms.guaranteed_workers;
        }
        Op::Attach { limit, lanes, workers }
    })
}

fn terms() -> impl Strategy<Value = Terms> {
    let bytes =
        (prop_oneof![2 => Just(0), 1 => 0..10_u64], prop_oneof![2 => Just(1000), 1 => 3..20_u64]);
    let workers =
        (prop_oneof![2 => Just(0), 1 => 0..3_usize], prop_oneof![2 => Just(10), 1 => 1..3_usize]);
    let most_job = prop_oneof![4 => Just(u64::MAX), 1 => 3..30_u64];
    (prop_oneof![Just(1_u32), Just(2), Just(4)], bytes, workers, most_job).prop_map(
        |(share, (guaranteed, most), (workers, most_workers), most_job_bytes)| Terms {
            share,
            guaranteed_bytes: guaranteed.min(most),
            guaranteed_workers: workers.min(most_workers),
            most_bytes: most,
            most_workers,
            most_job_bytes,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let which = || any::<u8>();
    let bytes = || prop_oneof![4 => 1..8_u64, 2 => 0..2_u64, 1 => 8..30_u64, 1 => 20..90_u64];
    let working = prop_oneof![40 => bytes(), 1 => Just(u64::MAX)];
    let patience = prop_oneof![
        5 => Just(Patience::Wait),
        3 => Just(Patience::OnCredit),
        2 => Just(Patience::Try),
        1 => Just(Patience::OwnWorker),
    ];
    let within = || prop_oneof![5 => Just(None), 2 => (0..300_000_000_u64).prop_map(Some)];
    let ended = prop_oneof![Just(Ended::Completed), Just(Ended::Panicked), Just(Ended::Cancelled)];
    prop_oneof![
        40 => (which(), which(), (working, bytes()), patience, within()).prop_map(
            |(crew, lane, (working, input), patience, within)| {
                Op::Offer { crew, lane, working, input, patience, within }
            }
        ),
        8 => (which(), which(), (bytes(), bytes()), within()).prop_map(
            |(crew, lane, (working, input), within)| {
                Op::Reserve { crew, lane, working, input, within }
            }
        ),
        3 => (which(), bytes(), bytes())
            .prop_map(|(place, working, input)| Op::Declare(place, working, input)),
        6 => which().prop_map(Op::EnterReserved),
        2 => which().prop_map(Op::GiveUpReserved),
        25 => (which(), ended, any::<bool>())
            .prop_map(|(worker, ended, stays_awake)| Op::Work { worker, ended, stays_awake }),
        5 => which().prop_map(Op::Withdraw),
        5 => which().prop_map(Op::Cancel),
        8 => which().prop_map(Op::Left),
        8 => (bytes(), any::<bool>()).prop_map(|(bytes, waits)| Op::Request { bytes, waits }),
        2 => which().prop_map(Op::WithdrawRequest),
        6 => which().prop_map(Op::Release),
        2 => (which(), bytes()).prop_map(|(permit, bytes)| Op::Shrink(permit, bytes)),
        1 => (which(), bytes()).prop_map(|(permit, bytes)| Op::Split(permit, bytes)),
        6 => (which(), bytes()).prop_map(|(job, bytes)| Op::Keep(job, bytes)),
        4 => (which(), bytes()).prop_map(|(job, bytes)| Op::Grow(job, bytes)),
        1 => Just(Op::PassTime(60_000_000_000)),
        4 => Just(Op::Look),
        3 => (which(), which()).prop_map(|(parent, job)| Op::Within(parent, job)),
        2 => (which(), 0..4_usize, terms()).prop_map(|(crew, jobs, terms)| {
            Op::AddLane { crew, jobs, terms, newest_first_after: None }
        }),
        2 => (which(), 0..100_000_000_u64).prop_map(|(crew, after)| {
            let (terms, newest_first_after) = (Terms::PLAIN, Some(after));
            Op::AddLane { crew, jobs: 10, terms, newest_first_after }
        }),
        2 => which().prop_map(Op::LetLaneGo),
        2 => overtaking().prop_map(Op::SetOvertaking),
        2 => (oversize(), any::<bool>()).prop_map(|(oversize, is_capacity_hard)| {
            Op::SetOversize { oversize, is_capacity_hard }
        }),
        15 => (1..100_000_000_u64).prop_map(Op::PassTime),
        3 => (5..50_u64, 0..6_u64)
            .prop_map(|(capacity, reserve)| Op::Resize { capacity, reserve }),
        1 => attach(),
        1 => which().prop_map(Op::Detach),
        1 => which().prop_map(Op::StartWorker),
        1 => which().prop_map(Op::Close),
        1 => which().prop_map(Op::Abort),
        1 => which().prop_map(Op::WaitForEnd),
        1 => which().prop_map(Op::StopWaitingForEnd),
    ]
}

fn oversize() -> impl Strategy<Value = Oversize> {
    prop_oneof![
        1 => Just(Oversize::Refuse),
        3 => (20..100_u64).prop_map(|most_bytes| Oversize::RunAlone { most_bytes }),
    ]
}

fn overtaking() -> impl Strategy<Value = Overtaking> {
    let longest = prop_oneof![Just(None), (1..50_u64).prop_map(Some)];
    (0..4_u32, longest).prop_map(|(most, longest)| match longest {
        Some(millis) => Overtaking::at_most(most).for_at_most(Duration::from_millis(millis)),
        None => Overtaking::at_most(most),
    })
}

fn check_histories(count: u32, executors: usize, longest: usize) {
    let executors = prop::collection::vec(attach(), executors);
    let history = (10..50_u64, executors, prop::collection::vec(op(), 1..longest), any::<bool>());
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&history, |(capacity, executors, ops, aborts)| {
        let mut pair = Pair::new(capacity, 2);
        for op in executors.iter().chain(&ops) {
            pair.apply(op);
        }
        pair.end(aborts);
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Abort(why)) => panic!("{why}"),
        Err(TestError::Fail(why, (capacity, executors, ops, aborts))) => {
            let ops = executors.iter().chain(&ops).map(|op| format!("\n{op:?}"));
            let ops: String = ops.collect();
            panic!("{why}\ncapacity {capacity}, ends by abort: {aborts}{ops}");
        }
    }
}

#[test]
fn the_state_machine_agrees_with_an_obvious_model_over_random_histories() {
    check_histories(30_000, 1, 40);
}

#[test]
fn executors_on_one_budget_agree_with_an_obvious_model_over_random_histories() {
    check_histories(30_000, 2, 40);
}

#[test]
fn the_state_machine_agrees_with_an_obvious_model_over_long_histories() {
    check_histories(300, 1, 1000);
}

// Fixed histories, checked against the model as well.

fn executor(capacity: u64, limit: u64, lanes: &[(usize, u64)], workers: u8) -> Pair {
    let mut pair = Pair::new(capacity + limit, 0);
    let lanes = lanes.iter().map(|(jobs, bytes)| (*jobs, *bytes, Terms::PLAIN)).collect();
    pair.apply(&Op::Attach { limit, lanes, workers });
    pair
}

fn offer(lane: u8, working: u64, input: u64) -> Op {
    Op::Offer { crew: 0, lane, working, input, patience: Patience::Wait, within: None }
}

const REQUEST: fn(u64) -> Op = |bytes| Op::Request { bytes, waits: true };
const WORK: Op = Op::Work { worker: 0, ended: Ended::Completed, stays_awake: false };

/// The jobs of a lane that are inside, outside, and admitted.
fn jobs(pair: &Pair, lane: usize) -> (usize, usize, usize) {
    let lane = pair.real.crew(0).lane(lane);
    let running_jobs = pair.real.accounts().get(lane.account).running_jobs;
    (lane.inside.len(), lane.outside.len(), running_jobs)
}

#[test]
fn a_lane_of_capacity_0_hands_its_jobs_straight_to_a_worker() {
    let mut pair = executor(10, 0, &[(0, 0)], 1);
    pair.apply(&offer(0, 1, 0));
    assert_eq!(jobs(&pair, 0), (0, 0, 1));
    pair.apply(&offer(0, 1, 0));
    assert_eq!(jobs(&pair, 0), (0, 1, 1));
    pair.apply(&WORK);
    pair.apply(&WORK);
    assert_eq!(jobs(&pair, 0), (0, 0, 1));
    pair.end(false);
}

#[test]
fn input_that_no_lane_can_hold_is_handed_straight_to_a_worker() {
    let mut pair = executor(10, 4, &[(5, 4)], 1);
    pair.apply(&offer(0, 0, 9));
    pair.apply(&offer(0, 0, 9));
    assert_eq!(jobs(&pair, 0), (0, 1, 1));
    pair.apply(&WORK);
    pair.apply(&WORK);
    assert_eq!(jobs(&pair, 0), (0, 0, 1));
    pair.end(false);
}

#[test]
fn i2_a_big_head_is_not_passed_by_small_jobs() {
    let mut pair = executor(100, 0, &[(400, 0)], 3);
    pair.apply(&REQUEST(50));
    pair.apply(&offer(0, 100, 0));
    for _ in 0..300 {
        pair.apply(&offer(0, 1, 0));
    }
    assert_eq!(jobs(&pair, 0), (301, 0, 0));
    pair.apply(&Op::Release(0));
    assert_eq!(jobs(&pair, 0), (300, 0, 1));
    assert_eq!(pair.real.ledger().held_bytes, 100);
    pair.end(false);
}

#[test]
fn i2_a_cancelled_head_lets_the_next_go_at_once() {
    let mut pair = executor(10, 0, &[(3, 0)], 3);
    pair.apply(&REQUEST(5));
    for working in [10, 1, 1] {
        pair.apply(&offer(0, working, 0));
    }
    assert_eq!(jobs(&pair, 0), (3, 0, 0));
    pair.apply(&Op::Cancel(0));
    assert_eq!(jobs(&pair, 0), (0, 0, 2));
    pair.end(false);
}

#[test]
fn i2_those_who_leave_from_the_middle_leave_the_others_in_order() {
    let mut pair = executor(10, 0, &[(100, 0)], 3);
    pair.apply(&REQUEST(5));
    for _ in 0..40 {
        pair.apply(&offer(0, 10, 0));
    }
    for number in 1..35 {
        pair.apply(&Op::Cancel(number));
        pair.apply(&Op::Left(0));
    }
    assert_eq!(jobs(&pair, 0), (6, 0, 0));
    pair.apply(&Op::Release(0));
    assert_eq!(jobs(&pair, 0), (5, 0, 1));
    pair.end(false);
}

#[test]
fn i1_a_shrink_below_what_is_held_only_blocks() {
    let mut pair = executor(20, 0, &[(3, 0)], 1);
    pair.apply(&REQUEST(15));
    pair.apply(&Op::Resize { capacity: 10, reserve: 0 });
    assert_eq!((pair.real.ledger().held_bytes, pair.real.ledger().free_bytes()), (15, 0));
    pair.apply(&offer(0, 0, 0));
    assert_eq!(jobs(&pair, 0), (0, 0, 1));
    pair.apply(&REQUEST(1));
    pair.apply(&Op::Shrink(0, 5));
    assert_eq!(pair.real.permits().waiting(), 1);
    pair.apply(&Op::Shrink(0, 1));
    assert_eq!((pair.real.ledger().held_bytes, pair.real.ledger().permits), (10, 2));
    pair.end(false);
}

#[test]
fn whoever_leaves_the_outside_lets_the_next_in() {
    let mut pair = executor(10, 4, &[(5, 4)], 0);
    for input in [3, 4, 1] {
        pair.apply(&offer(0, 0, input));
    }
    assert_eq!(jobs(&pair, 0), (1, 2, 0));
    pair.apply(&Op::Withdraw(1));
    assert_eq!(jobs(&pair, 0), (2, 0, 0));
    pair.end(false);
}

#[test]
fn the_place_of_a_cancelled_job_is_free_before_its_closure_is_dropped() {
    for leave in [Op::Cancel(0), Op::Abort(0)] {
        let mut pair = executor(10, 4, &[(1, 4)], 0);
        pair.apply(&offer(0, 0, 3));
        pair.apply(&offer(0, 0, 1));
        pair.apply(&leave);
        assert_eq!(jobs(&pair, 0), (1, 0, 0));
        assert_eq!(pair.real.crew(0).waiting_bytes(), 4);
        pair.end(false);
    }
}

#[test]
fn places_that_a_shrink_makes_free_go_to_the_oldest_of_all_lanes() {
    let mut pair = executor(20, 4, &[(5, 4), (5, 4)], 0);
    for (lane, working, input) in [(0, 0, 2), (1, 10, 3), (1, 0, 2), (0, 0, 2)] {
        pair.apply(&offer(lane, working, input));
    }
    assert_eq!((jobs(&pair, 0), jobs(&pair, 1)), ((1, 1, 0), (0, 2, 0)));
    pair.apply(&Op::Resize { capacity: 16, reserve: 0 });
    assert_eq!((jobs(&pair, 0), jobs(&pair, 1)), ((1, 1, 0), (1, 0, 0)));
    pair.end(false);
}
