//! Places in lanes that are taken before their jobs come.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use admit::{Cost, JoinError, Limit, Overtaking, Refused};

use crate::kit::{Blocker, Live, budget, builder, until};
use crate::watchdog::watch;

fn lane_of(capacity: usize, waiting_bytes: u64) -> (admit::Executor, admit::Lane, Blocker) {
    let budget = budget(100 + waiting_bytes);
    let builder = builder(1, &budget).capacity(capacity).waiting_bytes(waiting_bytes);
    let executor = builder.build().unwrap();
    let lane = executor.default_lane().clone();
    let blocker = Blocker::on(&lane, 100);
    (executor, lane, blocker)
}

#[test]
fn input_that_has_no_place_is_refused_before_it_is_read() {
    let _watch = watch!();
    let (executor, lane, blocker) = lane_of(2, 10);
    let place = lane.try_reserve(Cost::new(1).input(6)).unwrap();
    assert_eq!(executor.stats().waiting_input_bytes, 6);
    let refused = lane.try_reserve(Cost::new(1).input(5)).unwrap_err();
    let (input_bytes, waiting_bytes, limit_bytes) = (5, 6, 10);
    let limit = Limit::LaneInputBytes { input_bytes, waiting_bytes, limit_bytes };
    assert_eq!(refused, Refused::Full(limit));
    let second = lane.try_reserve(Cost::new(1)).unwrap();
    let refused = lane.try_reserve(Cost::new(1)).unwrap_err();
    assert_eq!(refused, Refused::Full(Limit::LaneJobs { waiting: 2, limit: 2 }));
    assert_eq!(lane.try_submit(Cost::new(1), || ()).unwrap_err().reason, refused);
    let never = lane.try_reserve(Cost::new(1).input(11)).unwrap_err();
    assert_eq!(never, Refused::InputAbove { input_bytes: 11, limit_bytes: 10 });
    let never = lane.try_reserve(Cost::new(101)).unwrap_err();
    assert!(matches!(never, Refused::NeverFits { .. }));
    let stats = executor.stats();
    assert_eq!((stats.lanes[0].reserved_places, stats.waiting_jobs), (2, 0));
    assert_eq!((stats.counts.refused_full, stats.counts.refused_never_fits), (3, 2));
    drop((place, second));
    assert_eq!((executor.stats().waiting_input_bytes, executor.stats().counts.cancelled), (0, 0));
    lane.try_submit(Cost::new(1), || ()).map(drop).unwrap();
    blocker.release();
}

#[test]
fn a_body_is_charged_as_it_arrives_and_no_further_than_there_is_room() {
    let _watch = watch!();
    let (executor, lane, blocker) = lane_of(10, 10);
    let mut one = lane.try_reserve(Cost::new(1)).unwrap();
    let mut other = lane.try_reserve(Cost::new(1)).unwrap();
    for bytes in 1..=6 {
        one.declare(Cost::new(1).input(bytes)).unwrap();
    }
    other.declare(Cost::new(1).input(4)).unwrap();
    assert!(matches!(other.declare(Cost::new(1).input(5)), Err(Refused::Full(_))));
    assert!(matches!(one.declare(Cost::new(1).input(11)), Err(Refused::InputAbove { .. })));
    assert!(matches!(one.declare(Cost::new(100).input(6)), Err(Refused::NeverFits { .. })));
    assert_eq!((one.cost(), other.cost()), (Cost::new(1).input(6), Cost::new(1).input(4)));
    assert_eq!(executor.stats().waiting_input_bytes, 10);
    // What is declared less is others' at once.
    one.declare(Cost::new(1).input(5)).unwrap();
    other.declare(Cost::new(50).input(5)).unwrap();
    // The charge goes with the body into the job.
    let job = other.submit(|| admit::Context::current().unwrap().held_bytes()).unwrap();
    assert_eq!(executor.stats().waiting_input_bytes, 10);
    blocker.release();
    assert_eq!(job.join().unwrap(), 55);
    assert_eq!(executor.stats().waiting_input_bytes, 5);
}

#[test]
fn a_job_stands_where_its_place_was_taken_and_holds_up_nobody_before_it_comes() {
    let _watch = watch!();
    let (executor, lane, blocker) = lane_of(10, 0);
    executor.budget().set_overtaking(Overtaking::at_most(3));
    let order = Arc::new(Mutex::new(Vec::new()));
    let job = |name: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    };
    let (early, late) = (lane.try_reserve(Cost::new(1)).unwrap(), lane.try_reserve(Cost::new(1)));
    let first = lane.submit(Cost::new(1), job("first")).unwrap();
    let second = lane.submit(Cost::new(1), job("second")).unwrap();
    let early = early.submit(job("early")).unwrap();
    blocker.release();
    for handle in [early, first, second] {
        handle.join().unwrap();
    }
    late.unwrap().submit(job("late")).unwrap().join().unwrap();
    assert_eq!(*order.lock().unwrap(), ["early", "first", "second", "late"]);
}

#[test]
fn the_time_to_start_goes_on_while_a_place_is_held() {
    let _watch = watch!();
    let (executor, lane, blocker) = lane_of(1, 0);
    let time = Duration::from_millis(20);
    let taken = Instant::now();
    let place = lane.start_within(time).try_reserve(Cost::new(1)).unwrap();
    until(|| taken.elapsed() > 3 * time);
    let live = Live::default();
    let one = live.one();
    let refused = place.submit(move || drop(one)).unwrap_err();
    assert_eq!((refused.reason, live.count()), (Refused::Expired, 1));
    assert_eq!(executor.stats().lanes[0].reserved_places, 0);
    assert_eq!(executor.stats().counts.expired, 1);
    blocker.release();
}

#[test]
fn a_place_may_be_given_another_time_to_start() {
    let _watch = watch!();
    let (_executor, lane, blocker) = lane_of(1, 0);
    let time = Duration::from_millis(20);
    let taken = Instant::now();
    let mut place = lane.start_within(time).try_reserve(Cost::new(1)).unwrap();
    until(|| taken.elapsed() > 3 * time);
    place.start_within(Duration::from_secs(3600));
    let handle = place.submit(|| 7).unwrap();
    blocker.release();
    assert_eq!(handle.join().unwrap(), 7);

    let blocker = Blocker::on(&lane, 100);
    let mut place = lane.start_within(Duration::from_secs(3600)).try_reserve(Cost::new(1)).unwrap();
    place.start_within(time);
    let handle = place.submit(|| 7).unwrap();
    assert!(matches!(handle.join(), Err(JoinError::Expired)));
    blocker.release();
}

#[test]
fn the_end_of_an_executor_does_not_wait_for_places() {
    let _watch = watch!();
    let (executor, lane, blocker) = lane_of(2, 10);
    let (given_up, mut used) =
        (lane.try_reserve(Cost::new(1).input(5)), lane.try_reserve(Cost::new(1)));
    blocker.release();
    executor.drain().unwrap();
    let used_place = used.as_mut().unwrap();
    assert_eq!(used_place.declare(Cost::new(2)), Err(Refused::Closed));
    let budget = executor.budget().clone();
    drop(executor);
    assert_eq!(used.unwrap().submit(|| 7).unwrap_err().reason, Refused::Closed);
    assert_eq!(lane.try_reserve(Cost::new(1)).unwrap_err(), Refused::Closed);
    drop((given_up, lane));
    until(|| budget.ledger().waiting_limit_bytes == 0);
}
