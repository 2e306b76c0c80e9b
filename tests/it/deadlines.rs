//! Jobs that must start in time, or not at all.

use std::time::{Duration, Instant};

use admit::{Cost, Handle, JoinError, LaneOptions, Refused};

use crate::kit::{Blocker, OnDrop, aside, budget, builder, executor, until};
use crate::watchdog::watch;

const SOON: Duration = Duration::from_millis(20);
const HOUR: Duration = Duration::from_secs(3600);

fn is_expired(handle: Handle<()>) -> bool {
    matches!(handle.join(), Err(JoinError::Expired))
}

#[test]
fn a_job_that_has_not_started_in_time_never_does_and_its_handle_says_so() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let blocker = Blocker::on(executor.default_lane(), 100);
    let in_time = executor.default_lane().start_within(SOON);
    let (dropped, is_dropped) = crossbeam_channel::bounded(1);
    let on_drop = OnDrop::new(move || dropped.send(()).unwrap());
    let late = in_time.submit(Cost::new(1), move || drop(on_drop)).unwrap();
    let patient = executor.default_lane().start_within(HOUR).submit(Cost::new(1), || 7).unwrap();
    // Nothing else happens on the budget: who waits notices.
    assert!(is_expired(late));
    is_dropped.recv().unwrap();
    let stats = executor.stats();
    assert_eq!((stats.counts.expired, stats.waiting_jobs), (1, 1));
    blocker.release();
    assert_eq!(patient.join().unwrap(), 7);
    assert_eq!(executor.stats().counts.completed, 2);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn the_time_that_a_submission_waits_for_its_place_counts() {
    let _watch = watch!();
    let executor = builder(1, &budget(100)).capacity(1).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 100);
    let waits = executor.submit(Cost::new(1), || ()).unwrap();
    let refused = executor.default_lane().start_within(SOON).submit(Cost::new(1), || 7);
    let refused = refused.unwrap_err();
    assert_eq!((refused.reason, (refused.work)()), (Refused::Expired, 7));
    let refused = executor.default_lane().start_within(Duration::ZERO).submit(Cost::new(1), || 7);
    assert_eq!(refused.unwrap_err().reason, Refused::Expired);
    assert_eq!(executor.stats().counts.expired, 2);
    blocker.release();
    waits.join().unwrap();
}

#[test]
fn jobs_whose_time_is_over_keep_nobody_out() {
    let _watch = watch!();
    let executor = builder(1, &budget(100)).capacity(2).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 100);
    let in_time = executor.default_lane().start_within(SOON);
    let late: Vec<_> = (0..2).map(|_| in_time.submit(Cost::new(1), || ()).unwrap()).collect();
    let lane = executor.default_lane().clone();
    let blocked = aside(move || lane.submit(Cost::new(1), || 7).unwrap().join().unwrap());
    until(|| {
        let stats = executor.stats();
        (stats.counts.expired, stats.waiting_jobs, stats.lanes[0].blocked_submits) == (2, 1, 0)
    });
    blocker.release();
    assert_eq!(blocked.recv().unwrap(), 7);
    assert!(late.into_iter().all(is_expired));
}

#[test]
fn the_newest_goes_first_once_the_oldest_has_waited_too_long() {
    let _watch = watch!();
    for (after, expected) in [(SOON, [0, 3, 2, 1]), (HOUR, [0, 1, 2, 3])] {
        let lane = LaneOptions::new("newest").newest_first_after(after);
        let executor = builder(1, &budget(100)).lane(lane).build().unwrap();
        let lane = executor.lane("newest").unwrap();
        let blocker = Blocker::on(executor.default_lane(), 100);
        let (tell, order) = crossbeam_channel::unbounded();
        let jobs: Vec<_> = (0..4)
            .map(|n| {
                let tell = tell.clone();
                // The first has its turn as soon as it is there, and keeps it.
                lane.submit(Cost::new(1), move || tell.send(n).unwrap()).unwrap()
            })
            .collect();
        until(|| executor.stats().oldest_wait.is_some_and(|wait| wait > 2 * SOON));
        blocker.release();
        jobs.into_iter().for_each(|job| job.join().unwrap());
        assert_eq!(order.try_iter().collect::<Vec<i32>>(), expected);
    }
}

#[test]
fn a_lane_has_a_largest_job() {
    let _watch = watch!();
    let lane = LaneOptions::new("uploads").most_job_bytes(30);
    let executor = builder(2, &budget(100)).lane(lane).build().unwrap();
    let uploads = executor.lane("uploads").unwrap();
    let refused = uploads.submit(Cost::new(31), || ()).unwrap_err();
    let never = Refused::NeverFits { cost: Cost::new(31), admissible_bytes: 30 };
    assert_eq!(refused.reason, never);
    assert_eq!(uploads.check(Cost::new(31)), Err(never));
    // What all of its jobs hold together is not bounded by that.
    let blockers = [Blocker::on(&uploads, 30), Blocker::on(&uploads, 30)];
    assert_eq!(executor.stats().running_bytes, 60);
    blockers.into_iter().for_each(Blocker::release);
    // A sum that does not fit in a number is no smaller one.
    assert!(uploads.check(Cost::new(u64::MAX).input(2)).is_err());
}

/// They were taken in on credit, by an intake that knows no time.
#[test]
fn jobs_that_are_late_before_the_state_machine_knows_of_them_neither_run_nor_keep_others_out() {
    let _watch = watch!();
    let executor = builder(1, &budget(100)).capacity(2).build().unwrap();
    let other = builder(1, &budget(100)).build().unwrap();
    for joined_by_job in [true, false] {
        let blocker = Blocker::on(executor.default_lane(), 1);
        let in_time = executor.default_lane().start_within(SOON);
        let submitted = Instant::now();
        let [one, two] = [(); 2].map(|()| in_time.submit(Cost::new(1), || ()).unwrap());
        until(|| submitted.elapsed() > 3 * SOON);
        if joined_by_job {
            assert!(other.submit(Cost::new(1), move || is_expired(one)).unwrap().join().unwrap());
        } else {
            drop(executor.try_submit(Cost::new(1), || ()).expect("nobody waits who may start"));
            assert!(is_expired(one));
        }
        assert!(is_expired(two));
        blocker.release();
    }
}
