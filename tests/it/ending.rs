//! Closing, draining and dropping, from everywhere.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admit::{AcquireError, Cost, DrainError, Executor, JoinError, LaneOptions, Refused};

use crate::kit::{Blocker, aside, budget, builder, executor, threads_named, until};
use crate::watchdog::watch;

#[test]
fn i8_after_a_close_nothing_waits_and_no_worker_stays() {
    let _watch = watch!();
    let budget = budget(100);
    let build = |name: &str| {
        let lane = LaneOptions::new("other").capacity(3);
        builder(4, &budget).waiting_bytes(20).lane(lane).thread_name(name).build().unwrap()
    };
    let executor = build("i8-close");
    until(|| !cfg!(target_os = "linux") || threads_named("i8-close") == 4);
    let blocker = Blocker::on(executor.default_lane(), 80);
    let jobs: Vec<_> =
        (0..10).map(|_| executor.submit(Cost::new(5).input(2), || ()).unwrap()).collect();
    executor.close();
    executor.close();
    assert!(executor.stats().is_closed);
    assert_eq!(executor.stats().waiting_jobs, 10);
    assert_eq!(executor.stats().waiting_input_bytes, 20);
    blocker.release();
    jobs.into_iter().for_each(|job| job.join().unwrap());
    until(|| executor.stats().workers == 0);
    until(|| threads_named("i8-close") == 0);
    let stats = executor.stats();
    assert_eq!((stats.waiting_jobs, stats.waiting_input_bytes, stats.running_jobs), (0, 0, 0));
    assert_eq!(budget.ledger().waiting_limit_bytes, 0);
    drop(executor);

    let executor = build("i8-drop");
    drop(executor.submit(Cost::new(1), || ()).unwrap());
    drop(executor);
    until(|| threads_named("i8-drop") == 0);
    assert_eq!(budget.ledger().waiting_limit_bytes, 0);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i9_a_job_may_drop_the_last_reference_to_its_executor() {
    let _watch = watch!();
    for round in 0..100 {
        let budget = budget(100);
        let built = builder(2, &budget).waiting_bytes(10).thread_name("i9-own").build();
        let executor = Arc::new(built.unwrap());
        let (release, wait) = crossbeam_channel::bounded::<()>(0);
        let inner = Arc::clone(&executor);
        let last = executor.submit(Cost::new(60), move || {
            let _ = wait.recv();
            if round % 2 == 0 {
                drop(inner);
            } else {
                let _inner = inner;
                panic!("with the executor");
            }
        });
        let waits = executor.submit(Cost::new(60), || ()).unwrap();
        drop(executor);
        drop(release);
        assert_eq!(last.unwrap().join().is_ok(), round % 2 == 0);
        assert!(matches!(waits.join(), Err(JoinError::Closed)));
        until(|| budget.ledger().waiting_limit_bytes == 0);
        assert_eq!(budget.ledger().held_bytes, 0);
    }
    until(|| threads_named("i9-own") == 0);
}

#[test]
fn i9_an_executor_may_be_dropped_by_a_job_of_another_and_during_a_panic() {
    let _watch = watch!();
    let budget = budget(100);
    let other = builder(1, &budget).build().unwrap();
    for panics in [false, true] {
        let executor = builder(2, &budget).build().unwrap();
        let running = executor.submit(Cost::new(1), std::thread::yield_now).unwrap();
        let dropper = other.submit(Cost::new(1), move || {
            let _executor = executor;
            assert!(!panics);
        });
        assert_eq!(dropper.unwrap().join().is_err(), panics);
        assert!(running.is_finished());
    }
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let executor = builder(2, &budget).build().unwrap();
        let _job = executor.submit(Cost::new(1), || ()).unwrap();
        panic!("with an executor");
    }));
    assert!(unwound.is_err());
    drop(other);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i9_a_drop_ends_everybody_who_waits_for_a_place() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(1, &budget).capacity(1).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 60);
    let queued = executor.submit(Cost::new(60), || ()).unwrap();
    let submitters: Vec<_> = (0..6)
        .map(|n| {
            let lane = executor.default_lane().clone();
            aside(move || match n % 3 {
                0 => lane.submit(Cost::new(1), || ()).unwrap_err().reason,
                1 => {
                    let hour = Duration::from_secs(3600);
                    lane.submit_timeout(Cost::new(1), hour, || ()).unwrap_err().reason
                }
                _ => {
                    let mut map = lane.map(0.., |_| Cost::new(1), |n: u64| n);
                    match map.next() {
                        Some(Err(admit::MapError::Refused(reason))) => reason,
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    let acquirers: Vec<_> = (0..3)
        .map(|_| {
            let budget = budget.clone();
            aside(move || drop(budget.acquire(100).unwrap()))
        })
        .collect();
    until(|| {
        let stats = executor.stats();
        stats.lanes[0].blocked_submits == 6 && stats.blocked_acquires == 3
    });
    let lane = executor.default_lane().clone();
    let dropped = aside(move || drop(executor));
    for submitter in submitters {
        assert_eq!(submitter.recv().unwrap(), Refused::Closed);
    }
    assert!(matches!(queued.join(), Err(JoinError::Closed)));
    blocker.release();
    dropped.recv().unwrap();
    acquirers.into_iter().for_each(|acquirer| acquirer.recv().unwrap());
    assert_eq!(lane.submit(Cost::new(1), || ()).unwrap_err().reason, Refused::Closed);
}

#[test]
fn i9_a_scope_in_progress_ends_when_its_executor_is_closed_and_aborted() {
    let _watch = watch!();
    let executor = Arc::new(builder(1, &budget(100)).build().unwrap());
    let (release, wait) = crossbeam_channel::bounded::<()>(0);
    let inner = Arc::clone(&executor);
    let scope = aside(move || {
        let wait = &wait;
        inner.scope(|scope| {
            drop(scope.submit(Cost::new(60), || wait.recv().is_err()).unwrap());
            let waits = scope.submit(Cost::new(60), || ()).unwrap();
            let waits = waits.join();
            (waits, scope.submit(Cost::new(1), || ()).map(drop).unwrap_err().reason)
        })
    });
    until(|| executor.stats().waiting_jobs == 1);
    executor.close();
    executor.abort_waiting();
    assert!(scope.try_recv().is_err(), "a job of the scope still runs");
    drop(release);
    let (waits, refused) = scope.recv().unwrap();
    assert!(matches!(waits, Err(JoinError::Closed)));
    assert_eq!(refused, Refused::Closed);
}

#[test]
fn i9_a_worker_never_waits_for_its_own_executor() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let executor = Arc::new(executor);
    let (inner, its_budget) = (Arc::clone(&executor), budget.clone());
    let job = executor.submit(Cost::new(60), move || {
        let queued = inner.submit(Cost::new(61), || 5).unwrap();
        let queued = queued.join_timeout(Duration::ZERO).unwrap_err();
        assert!(matches!(queued.join(), Err(JoinError::AboveOwn { .. })));
        assert!(matches!(its_budget.acquire(41), Err(AcquireError::OwnWorker)));
        assert_eq!(its_budget.acquire(40).unwrap().bytes(), 40, "no worker is free for the other");
        let refused = inner.scope(|scope| scope.submit(Cost::new(0), || ()).map(drop));
        assert_eq!(refused.unwrap_err().reason, Refused::OwnWorker);
        inner.drain()
    });
    assert_eq!(job.unwrap().join().unwrap(), Err(DrainError::OwnWorker));
    assert!(executor.stats().is_closed, "it is closed all the same");
    executor.drain().unwrap();
    assert_eq!(executor.stats().counts.completed, 2);
}

#[test]
fn i9_drains_end_together_and_a_second_one_at_once() {
    let _watch = watch!();
    let executor = Arc::new(executor(2, 100).0);
    let blocker = Blocker::on(executor.default_lane(), 60);
    let waits = executor.submit(Cost::new(60), || ()).unwrap();
    let drains: Vec<_> = (0..4)
        .map(|_| {
            let executor = Arc::clone(&executor);
            aside(move || (executor.drain(), executor.stats().workers))
        })
        .collect();
    until(|| executor.stats().is_closed);
    let unfinished = DrainError::Unfinished { running_jobs: 1, waiting_jobs: 1 };
    assert_eq!(executor.drain_timeout(Duration::ZERO), Err(unfinished));
    blocker.let_go();
    drains.into_iter().for_each(|drain| assert_eq!(drain.recv().unwrap(), (Ok(()), 0)));
    assert!(waits.is_finished());
    assert_eq!(executor.drain(), Ok(()));
    assert_eq!(executor.drain_timeout(Duration::ZERO), Ok(()));
}

#[test]
fn i9_a_drop_after_a_drain_that_gave_up_does_not_wait_for_a_stuck_job() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(1, &budget).thread_name("i9-stuck").build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 60);
    let waits = executor.submit(Cost::new(60), || ()).unwrap();
    executor.drain_timeout(Duration::ZERO).unwrap_err();
    drop(executor);
    assert!(matches!(waits.join(), Err(JoinError::Closed)));
    assert_eq!(budget.ledger().held_bytes, 60);
    blocker.release();
    until(|| threads_named("i9-stuck") == 0);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i9_a_drop_waits_for_the_running_jobs() {
    let _watch = watch!();
    let executor = executor(2, 100).0;
    let (started, is_started) = crossbeam_channel::bounded(0);
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let job = executor.submit(Cost::new(1), move || {
        started.send(()).unwrap();
        (0..10_000).for_each(|_| std::thread::yield_now());
        assert!(!seen.load(Ordering::SeqCst));
    });
    is_started.recv().unwrap();
    drop(executor);
    dropped.store(true, Ordering::SeqCst);
    assert!(job.unwrap().try_join().unwrap().is_ok());
}

#[test]
fn i9_executors_come_and_go_on_one_budget_and_leave_nothing_behind() {
    let _watch = watch!();
    let budget = budget(1000);
    let start = budget.ledger();
    for round in 0..1000_u64 {
        let executor = builder(1 + round as usize % 3, &budget).waiting_bytes(round).build();
        let executor: Executor = executor.unwrap();
        let job = executor.submit(Cost::new(1000 - round).input(0), move || round).unwrap();
        match round % 4 {
            0 => assert_eq!(job.join().unwrap(), round),
            1 => std::mem::forget(job),
            2 => drop(job),
            _ => executor.drain().unwrap(),
        }
    }
    let mut end = budget.ledger();
    end.peak_held_bytes = start.peak_held_bytes;
    assert_eq!(end, start);
}

#[test]
fn i9_a_drop_waits_for_the_running_jobs_after_one_of_them_asked_for_a_drain() {
    let _watch = watch!();
    let executor = Arc::new(executor(1, 10).0);
    let inner = Arc::clone(&executor);
    let (asked, has_asked) = crossbeam_channel::bounded(0);
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let job = executor.submit(Cost::new(1), move || {
        assert_eq!(inner.drain_timeout(Duration::ZERO), Err(DrainError::OwnWorker));
        drop(inner);
        asked.send(()).unwrap();
        (0..100_000).for_each(|_| std::thread::yield_now());
        assert!(!seen.load(Ordering::SeqCst), "the drop did not wait");
    });
    has_asked.recv().unwrap();
    drop(executor);
    dropped.store(true, Ordering::SeqCst);
    job.unwrap().join().unwrap();
}
