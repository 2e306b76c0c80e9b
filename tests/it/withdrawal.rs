//! Whoever gives up a place makes way for those behind.

use std::time::Duration;

use admit::{AcquireError, Budget, Cost, Executor, Refused};

use crate::kit::{Blocker, OnDrop, aside, budget, builder, until};
use crate::watchdog::watch;

/// Long enough for the others to get in line behind, and no part of any assertion.
const WHILE: Duration = Duration::from_millis(200);

fn half_held() -> (Executor, Budget, admit::Permit) {
    let budget = budget(10);
    let executor = builder(4, &budget).build().unwrap();
    let held = budget.acquire(5).unwrap();
    (executor, budget, held)
}

#[test]
fn an_acquirer_that_gives_up_makes_way_for_the_ones_behind() {
    let _watch = watch!();
    let (executor, budget, held) = half_held();
    let acquire = |bytes: u64| {
        let budget = budget.clone();
        aside(move || budget.acquire(bytes).unwrap())
    };
    let first = {
        let budget = budget.clone();
        aside(move || budget.acquire_timeout(10, WHILE).map(drop))
    };
    until(|| executor.stats().blocked_acquires == 1);
    let (second, third) = (acquire(1), acquire(1));
    let gave_up = AcquireError::NotNow { needed_bytes: 10, free_bytes: 5, admissible_bytes: 10 };
    let job = executor.submit(Cost::new(1), || ()).unwrap();
    match first.recv().unwrap().unwrap_err() {
        AcquireError::NotNow { needed_bytes: 10, admissible_bytes: 10, .. } => {}
        other => panic!("{other} is not {gave_up}"),
    }
    let permits = [second.recv().unwrap(), third.recv().unwrap()];
    job.join().unwrap();
    drop((held, permits));
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn a_waiting_job_that_is_cancelled_makes_way_for_the_ones_behind() {
    let _watch = watch!();
    let (executor, budget, held) = half_held();
    let large = executor.submit(Cost::new(10), || ()).unwrap();
    let small = [(); 2].map(|()| executor.submit(Cost::new(1), || ()).unwrap());
    let acquirer = {
        let budget = budget.clone();
        aside(move || budget.acquire(1).unwrap())
    };
    until(|| executor.stats().blocked_acquires == 1);
    assert_eq!(executor.stats().waiting_jobs, 3);
    assert!(large.cancel());
    small.into_iter().for_each(|job| job.join().unwrap());
    drop((acquirer.recv().unwrap(), held));
}

#[test]
fn a_cancelled_closure_that_is_slow_to_drop_holds_up_nobody() {
    let _watch = watch!();
    let (executor, _, held) = half_held();
    let (behind, is_behind_done) = crossbeam_channel::bounded(1);
    let slow = OnDrop::new(move || is_behind_done.recv().unwrap());
    let large = executor.submit(Cost::new(10), move || drop(slow)).unwrap();
    let small = executor.submit(Cost::new(1), move || behind.send(()).unwrap()).unwrap();
    assert!(large.cancel());
    small.join().unwrap();
    drop(held);
}

#[test]
fn waiting_jobs_that_are_aborted_or_evicted_make_way_for_other_executors() {
    let _watch = watch!();
    for evict in [false, true] {
        let (executor, budget, held) = half_held();
        let other = builder(1, &budget).build().unwrap();
        let large = executor.submit(Cost::new(10), || ()).unwrap();
        let small = other.submit(Cost::new(1), || ()).unwrap();
        assert_eq!(other.stats().waiting_jobs, 1);
        if evict {
            budget.resize(9, 0);
        } else {
            executor.abort_waiting();
        }
        small.join().unwrap();
        assert!(large.join().is_err());
        drop(held);
    }
}

#[test]
fn a_submission_that_times_out_makes_way_for_the_ones_behind() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = builder(4, &budget).capacity(0).build().unwrap();
    let held = budget.acquire(5).unwrap();
    let submit = |bytes: u64, timeout: Duration| {
        let lane = executor.default_lane().clone();
        aside(move || match lane.submit_timeout(Cost::new(bytes), timeout, || ()) {
            Ok(handle) => handle.join().map_err(|_| None),
            Err(refused) => Err(Some(refused.reason)),
        })
    };
    let first = submit(10, WHILE);
    until(|| executor.stats().lanes[0].blocked_submits == 1);
    let behind = [submit(1, Duration::MAX), submit(1, Duration::MAX)];
    assert!(matches!(first.recv().unwrap(), Err(Some(Refused::Full(_)))));
    for one in behind {
        one.recv().unwrap().unwrap();
    }
    drop(held);
}

#[test]
fn a_place_in_a_lane_that_is_given_up_goes_to_whoever_waits_for_it() {
    let _watch = watch!();
    let executor = builder(1, &budget(10)).waiting_bytes(4).capacity(2).build().unwrap();
    for round in 0..3 {
        let blocker = Blocker::on(executor.default_lane(), 1);
        let queued = [(); 2].map(|()| executor.submit(Cost::new(1).input(2), || ()).unwrap());
        let waits = {
            let lane = executor.default_lane().clone();
            aside(move || lane.submit(Cost::new(1).input(2), || ()).unwrap())
        };
        until(|| executor.stats().lanes[0].blocked_submits == 1);
        match round {
            0 => assert!(queued[0].cancel()),
            1 => assert!(queued[1].cancel()),
            _ => assert_eq!(executor.abort_waiting(), 2),
        }
        let waits = waits.recv().unwrap();
        blocker.release();
        waits.join().unwrap();
        queued.into_iter().for_each(|job| drop(job.join()));
    }
}

#[test]
fn giving_up_at_the_moment_of_admission_loses_nothing() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = builder(2, &budget).capacity(0).build().unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..500 {
        let held = budget.acquire(10).unwrap();
        let timeout = Duration::from_micros(rng.u64(0..60));
        let acquirer = {
            let budget = budget.clone();
            aside(move || drop(budget.acquire_timeout(10, timeout)))
        };
        let submitter = {
            let lane = executor.default_lane().clone();
            aside(move || {
                let submitted = lane.submit_timeout(Cost::new(10), timeout, || ());
                submitted.map(|handle| handle.join().unwrap()).is_ok()
            })
        };
        (0..rng.u8(0..8)).for_each(|_| std::thread::yield_now());
        drop(held);
        acquirer.recv().unwrap();
        submitter.recv().unwrap();
        assert_eq!(budget.ledger().held_bytes, 0);
    }
}

/// Submitters at a full lane are told together when several places are free. Here only one is, and no other
/// will be: a thread looks itself, and so does one whose time is over.
#[test]
fn who_has_a_place_is_told_also_if_no_other_becomes_free() {
    let _watch = watch!();
    for timeout in [None, Some(Duration::from_micros(500))] {
        let executor = builder(1, &budget(1)).capacity(40).build().unwrap();
        let lane = executor.default_lane();
        let first = Blocker::on(lane, 1);
        let second = Blocker::waiting_on(lane, 1);
        let waiting: Vec<_> =
            (0..39).map(|_| executor.submit(Cost::new(1), || ()).unwrap()).collect();
        let (placed, is_placed) = crossbeam_channel::bounded(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let handle = match timeout {
                    None => lane.submit(Cost::new(1), || ()).unwrap(),
                    Some(timeout) => loop {
                        if let Ok(handle) = lane.submit_timeout(Cost::new(1), timeout, || ()) {
                            break handle;
                        }
                    },
                };
                placed.send(handle).unwrap();
            });
            let stats = || executor.stats().lanes[0].clone();
            until(|| stats().counts.refused_full > 0 || stats().blocked_submits > 0);
            first.release();
            let handle = is_placed.recv().unwrap();
            second.release();
            handle.join().unwrap();
        });
        waiting.into_iter().for_each(|handle| handle.join().unwrap());
    }
}
