//! Lanes that share, with guarantees and ceilings.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use admit::{BuildError, Cost, Executor, JoinError, Lane, LaneOptions, Refused};

use crate::child;
use crate::kit::{Blocker, budget, builder, until};
use crate::watchdog::watch;

fn lane(executor: &Executor, name: &str) -> Lane {
    executor.lane(name).unwrap()
}

fn running(executor: &Executor) -> Vec<usize> {
    executor.stats().lanes.iter().map(|lane| lane.running_jobs).collect()
}

/// Jobs that run, or wait to, until they are released.
struct Load {
    blockers: Vec<Blocker>,
}

impl Load {
    fn on(lane: &Lane, jobs: usize, bytes: u64) -> Load {
        Load { blockers: (0..jobs).map(|_| Blocker::waiting_on(lane, bytes)).collect() }
    }

    fn release(self) {
        self.blockers.into_iter().for_each(Blocker::let_go);
    }
}

#[test]
fn stats_say_what_each_lane_may_and_did_receive() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(2, &budget).lane(LaneOptions::new("lane").share(3)).build().unwrap();
    let blocker = Blocker::on(&executor.lane("lane").unwrap(), 50);
    let received =
        || executor.stats().lanes.iter().map(|lane| lane.received_byte_seconds).collect();
    until(|| {
        let received: Vec<f64> = received();
        received[1] >= 1.0
    });
    blocker.release();
    let stats = executor.stats();
    assert_eq!(stats.lanes.iter().map(|lane| lane.share).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(stats.lanes[0].received_byte_seconds, 0.0);
}

#[test]
fn bytes_that_are_guaranteed_to_a_lane_are_there_for_it_and_for_nobody_else() {
    let _watch = watch!();
    let budget = budget(10);
    let logins = LaneOptions::new("logins").guaranteed_bytes(4);
    let executor = builder(4, &budget).lane(logins).build().unwrap();
    let other = Load::on(executor.default_lane(), 3, 3);
    until(|| running(&executor) == [2, 0]);
    assert_eq!(executor.stats().waiting_jobs, 1);
    assert!(budget.try_acquire(1).is_err(), "the head of the lane and the guarantee are before it");
    // The head of the other lane does not fit, and this does not pass it: it takes what the head
    // could not have.
    lane(&executor, "logins").submit(Cost::new(4), || ()).unwrap().join().unwrap();

    let refused = executor.submit(Cost::new(7), || ()).unwrap_err();
    assert!(matches!(refused.reason, Refused::NeverFits { admissible_bytes: 6, .. }));
    let refused = budget.try_acquire(7).unwrap_err();
    assert!(refused.to_string().contains("6 bytes"), "{refused}");
    let largest = lane(&executor, "logins").submit(Cost::new(10), || ()).unwrap();
    other.release();
    largest.join().unwrap();
    drop(executor);
    assert!(budget.try_acquire(10).is_ok(), "a guarantee ends with the executor");
}

#[test]
fn workers_that_are_guaranteed_to_a_lane_are_there_for_it_and_for_nobody_else() {
    let _watch = watch!();
    let logins = LaneOptions::new("logins").guaranteed_workers(1);
    let executor = builder(3, &budget(100)).lane(logins).build().unwrap();
    let other = Load::on(executor.default_lane(), 3, 1);
    until(|| running(&executor) == [2, 0]);
    assert_eq!((executor.stats().waiting_jobs, executor.stats().free_workers), (1, 1));
    lane(&executor, "logins").submit(Cost::new(1), || ()).unwrap().join().unwrap();
    // The lane may have more than it was guaranteed.
    other.release();
    let all = Arc::new(Barrier::new(3));
    let jobs: Vec<_> = (0..3)
        .map(|_| {
            let all = Arc::clone(&all);
            lane(&executor, "logins").submit(Cost::new(1), move || all.wait().is_leader()).unwrap()
        })
        .collect();
    let leaders = jobs.into_iter().filter_map(|job| job.join().ok()).filter(|leads| *leads);
    assert_eq!(leaders.count(), 1);
}

#[test]
fn a_lane_stays_below_its_ceilings_and_holds_up_nobody_meanwhile() {
    let _watch = watch!();
    let few = LaneOptions::new("few").most_workers(1);
    let small = LaneOptions::new("small").most_bytes(5);
    let executor = builder(4, &budget(100)).lane(few).lane(small).build().unwrap();
    let (few, small) = (lane(&executor, "few"), lane(&executor, "small"));
    let loads = [Load::on(&few, 2, 1), Load::on(&small, 2, 3)];
    until(|| running(&executor) == [0, 1, 1]);
    assert_eq!((executor.stats().waiting_jobs, executor.stats().free_workers), (2, 2));
    executor.submit(Cost::new(90), || ()).unwrap().join().unwrap();
    let refused = small.submit(Cost::new(6), || ()).unwrap_err();
    assert!(matches!(refused.reason, Refused::NeverFits { admissible_bytes: 5, .. }));
    loads.into_iter().for_each(Load::release);
    until(|| executor.stats().waiting_jobs == 0);
}

#[test]
fn a_lane_that_was_idle_has_no_credit_and_no_debt() {
    let _watch = watch!();
    // The first lane has the whole budget for itself, then the second one comes: from then on
    // they take turns.
    let executor = builder(1, &budget(1)).lane(LaneOptions::new("late")).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 1);
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let turns = AtomicUsize::new(0);
    let submit = |lane: &Lane, name: &'static str| {
        let order = Arc::clone(&order);
        turns.fetch_add(1, Ordering::Relaxed);
        lane.submit(Cost::new(1), move || order.lock().push(name)).unwrap()
    };
    let late = lane(&executor, "late");
    let mut jobs: Vec<_> = (0..3).map(|_| submit(executor.default_lane(), "early")).collect();
    jobs.extend((0..3).map(|_| submit(&late, "late")));
    blocker.release();
    jobs.into_iter().for_each(|job| job.join().unwrap());
    let order = order.lock();
    assert_eq!(order.len(), 6);
    assert!(order[..3] != ["early"; 3] && order[..3] != ["late"; 3], "{order:?}");
}

#[test]
fn a_lane_that_was_added_goes_when_nobody_holds_it_and_its_jobs_have_ended() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = builder(2, &budget).waiting_bytes(4).build().unwrap();
    let tenant = executor.add_lane(LaneOptions::new("tenant").capacity(2)).unwrap();
    assert!(matches!(
        executor.add_lane(LaneOptions::new("tenant")),
        Err(BuildError::LaneTwice { lane }) if lane == "tenant",
    ));
    let running = Blocker::on(&tenant, 1);
    let waiting = Blocker::waiting_on(&tenant, 6);
    let clone = tenant.clone();
    drop(tenant);
    let found = lane(&executor, "tenant");
    drop((clone, found));
    // Its jobs are its own.
    assert!(executor.lane("tenant").is_some());
    assert_eq!(executor.stats().lanes.len(), 2);
    running.release();
    waiting.release();
    until(|| executor.stats().lanes.len() == 1);
    assert!(executor.lane("tenant").is_none());
    assert_eq!(executor.stats().counts.completed, 2, "what it did is not forgotten");

    // Others may have its name and its place, with bounds of their own.
    let again = executor.add_lane(LaneOptions::new("tenant").capacity(0)).unwrap();
    let blocker = Blocker::on(&again, 5);
    assert!(again.try_submit(Cost::new(1), || ()).is_ok(), "a worker is free");
    let other = Blocker::waiting_on(&again, 0);
    until(|| executor.stats().free_workers == 0);
    assert!(matches!(again.try_submit(Cost::new(0), || ()).unwrap_err().reason, Refused::Full(_)));
    blocker.release();
    other.release();
    executor.close();
    assert!(matches!(executor.add_lane(LaneOptions::new("late")), Err(BuildError::Closed)));
    drop(executor);
    assert_eq!(again.submit(Cost::new(1), || ()).unwrap_err().reason, Refused::Closed);
}

#[test]
fn guarantees_of_a_lane_that_is_added_are_checked_and_end_with_it() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = builder(2, &budget).build().unwrap();
    let add = |lane: LaneOptions| executor.add_lane(lane);
    let named = || LaneOptions::new("a");
    assert!(matches!(
        add(named().guaranteed_workers(2)),
        Err(BuildError::GuaranteedWorkers { guaranteed: 2, workers: 2 }),
    ));
    assert!(matches!(
        add(named().guaranteed_bytes(11)),
        Err(BuildError::GuaranteesAboveBudget { guaranteed_bytes: 11, available_bytes: 10, .. }),
    ));
    let permit = budget.acquire(8).unwrap();
    let waits = executor.submit(Cost::new(7), || ()).unwrap();
    let lane = add(named().guaranteed_bytes(4).guaranteed_workers(1)).unwrap();
    // What can never be admitted beside the guarantee is ended, as when a budget shrinks.
    assert!(matches!(waits.join(), Err(JoinError::NeverFits { admissible_bytes: 6, .. })));
    drop(permit);
    assert!(budget.try_acquire(7).is_err());
    drop(lane);
    assert!(budget.try_acquire(10).is_ok());
}

#[test]
fn two_thousand_tenants_come_and_go_and_leave_nothing() {
    let _watch = watch!();
    let executor = builder(2, &budget(10)).build().unwrap();
    let add = |n: usize| executor.add_lane(LaneOptions::new(format!("tenant {n}"))).unwrap();
    let idle: Vec<_> = (0..1_000).map(add).collect();
    for n in 1_000..2_000 {
        // The lane is dropped before its job has run.
        drop(add(n).submit(Cost::new(1), || ()).unwrap());
    }
    until(|| executor.stats().counts.completed == 1_000);
    until(|| executor.stats().lanes.len() == 1_001);
    drop(idle);
    assert_eq!(executor.stats().lanes.len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn fewer_workers_than_are_guaranteed_to_lanes_are_not_made_do_with() {
    const STACK_BYTES: usize = 1 << 30;
    if !child::is_child() {
        let name = "lanes::fewer_workers_than_are_guaranteed_to_lanes_are_not_made_do_with";
        return child::run(name);
    }
    let mapped = admit::MemoryFacts::detect().mapped_bytes.unwrap();
    child::limit_address_space(mapped + 5 * STACK_BYTES as u64 / 2);
    let build = |guaranteed| {
        let lane = LaneOptions::new("logins").guaranteed_workers(guaranteed);
        let builder = Executor::builder().budget(budget(10)).stack_bytes(STACK_BYTES);
        builder.lane(lane).build()
    };
    assert_eq!(build(1).unwrap().stats().workers, 2);
    assert!(matches!(build(2), Err(BuildError::Workers { started: 2, asked: 4, .. })));
}

#[test]
fn terms_that_cannot_be_kept_are_refused_with_their_numbers() {
    let build = |lane: LaneOptions| builder(2, &budget(10)).lane(lane).build().map(drop);
    let named = || LaneOptions::new("a");
    for (lane, message) in [
        (named().share(0), "lane \"a\" has a share of 0, and must have 1 to 1000"),
        (named().share(1001), "lane \"a\" has a share of 1001, and must have 1 to 1000"),
        (
            named().guaranteed_bytes(8).most_bytes(7),
            "lane \"a\" is guaranteed 8 bytes, and may have 7 bytes at most",
        ),
        (
            named().guaranteed_workers(1).most_workers(0),
            "lane \"a\" is guaranteed 1 workers, and may have 0 at most",
        ),
        (named().most_workers(0), "lane \"a\" is guaranteed 0 workers, and may have 0 at most"),
        (
            named().guaranteed_workers(2),
            "2 workers are guaranteed to lanes, and there are 2 in all",
        ),
        (
            named().guaranteed_bytes(11),
            "11 bytes guaranteed to lanes and 0 bytes for waiting input are more than the 10 bytes \
             that the budget has left",
        ),
    ] {
        let error: BuildError = build(lane).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert!(build(named().guaranteed_bytes(u64::MAX)).is_err());
    assert!(build(named().guaranteed_workers(usize::MAX)).is_err());
    assert!(build(named().guaranteed_bytes(10).guaranteed_workers(1).share(1000)).is_ok());
}
