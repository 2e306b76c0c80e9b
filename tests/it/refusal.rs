//! A refused submission gives the closure back and leaves no trace but its count.

use std::time::Duration;

use admit::{Cost, Counts, Executor, Lane, LaneOptions, Limit, Refused, Stats, SubmitError};

use crate::kit::{Blocker, Live, aside, budget, builder, until};
use crate::watchdog::watch;

/// What a refusal must not change.
fn rest(stats: &Stats) -> impl PartialEq + std::fmt::Debug + use<> {
    let lanes: Vec<_> = stats
        .lanes
        .iter()
        .map(|lane| (lane.waiting_jobs, lane.waiting_input_bytes, lane.blocked_submits))
        .collect();
    let waiting = (stats.waiting_jobs, stats.waiting_input_bytes);
    (stats.ledger, stats.running_jobs, stats.running_bytes, waiting, lanes)
}

fn refusals(counts: &Counts) -> [u64; 4] {
    let Counts { refused_full, refused_never_fits, refused_closed, refused_own_worker, .. } =
        *counts;
    [refused_full, refused_never_fits, refused_closed, refused_own_worker]
}

/// Submits, expects a refusal with the closure as it was, and no change but one count.
#[track_caller]
fn refused(executor: &Executor, lane: &Lane, cost: Cost, patience: Option<Duration>) -> Refused {
    let live = Live::default();
    let (one, before) = (live.one(), executor.stats());
    let work = move || drop(one);
    let submitted = match patience {
        None => lane.try_submit(cost, work),
        Some(timeout) => lane.submit_timeout(cost, timeout, work),
    };
    let SubmitError { reason, work } = submitted.expect_err("refused");
    let after = executor.stats();
    assert_eq!(rest(&before), rest(&after), "{reason}");
    let (before, after) = (refusals(&before.counts), refusals(&after.counts));
    assert_eq!(before.iter().sum::<u64>() + 1, after.iter().sum::<u64>(), "{reason}");
    assert_eq!(live.count(), 1, "the closure was touched");
    work();
    assert_eq!(live.count(), 0, "the closure was copied");
    reason
}

#[test]
fn i5_a_refused_submission_returns_the_closure_and_changes_nothing() {
    let _watch = watch!();
    let budget = budget(130);
    let executor = builder(1, &budget)
        .waiting_bytes(30)
        .capacity(2)
        .lane(LaneOptions::new("narrow").input_bytes(10))
        .lane(LaneOptions::new("wide").input_bytes(30))
        .build()
        .unwrap();
    let lane = executor.default_lane();
    let (narrow, wide) = (executor.lane("narrow").unwrap(), executor.lane("wide").unwrap());
    let blocker = Blocker::on(lane, 1);
    let short = Some(Duration::from_micros(50));

    let _jobs = [(); 2].map(|()| executor.submit(Cost::new(1), || ()).unwrap());
    for patience in [None, short, Some(Duration::ZERO)] {
        let reason = refused(&executor, lane, Cost::new(1), patience);
        assert_eq!(reason, Refused::Full(Limit::LaneJobs { waiting: 2, limit: 2 }));
    }

    let _input = narrow.submit(Cost::new(1).input(6), || ()).unwrap();
    for patience in [None, short] {
        let reason = refused(&executor, &narrow, Cost::new(1).input(5), patience);
        let limit = Limit::LaneInputBytes { input_bytes: 5, waiting_bytes: 6, limit_bytes: 10 };
        assert_eq!(reason, Refused::Full(limit));
    }

    let _more = wide.submit(Cost::new(1).input(20), || ()).unwrap();
    for patience in [None, short] {
        let reason = refused(&executor, &wide, Cost::new(1).input(5), patience);
        let limit = Limit::WaitingBytes { input_bytes: 5, waiting_bytes: 26, limit_bytes: 30 };
        assert_eq!(reason, Refused::Full(limit));
    }

    for cost in [Cost::new(101), Cost::new(100).input(1), Cost::new(u64::MAX).input(u64::MAX)] {
        for patience in [None, short, Some(Duration::MAX)] {
            let reason = refused(&executor, &wide, cost, patience);
            assert_eq!(reason, Refused::NeverFits { cost, admissible_bytes: 100 });
        }
    }

    executor.close();
    for patience in [None, short, Some(Duration::MAX)] {
        assert_eq!(refused(&executor, lane, Cost::new(1), patience), Refused::Closed);
    }
    blocker.release();
    executor.drain().unwrap();
    assert_eq!(executor.stats().counts.completed, 5);
    assert_eq!(refused(&executor, lane, Cost::new(1), None), Refused::Closed);
}

#[test]
fn i5_a_worker_that_would_wait_for_its_own_executor_gets_the_closure_back() {
    let _watch = watch!();
    let executor = std::sync::Arc::new(builder(2, &budget(100)).capacity(1).build().unwrap());
    let blocker = Blocker::on(executor.default_lane(), 1);
    let inner = std::sync::Arc::clone(&executor);
    let job = executor.submit(Cost::new(1), move || {
        let queued = inner.submit(Cost::new(1), || ()).unwrap();
        let reason = refused(&inner, inner.default_lane(), Cost::new(1), Some(Duration::MAX));
        assert_eq!(reason, Refused::OwnWorker);
        assert_eq!(inner.submit(Cost::new(1), || ()).unwrap_err().reason, Refused::OwnWorker);
        let full = Some(Duration::ZERO);
        let reason = refused(&inner, inner.default_lane(), Cost::new(1), full);
        assert!(matches!(reason, Refused::Full(_)));
        queued.join().unwrap();
    });
    job.unwrap().join().unwrap();
    blocker.release();
    until(|| executor.stats().counts.completed == 3);
    assert_eq!(executor.stats().counts.refused_own_worker, 2);
}

#[test]
fn i5_a_submission_that_waits_gets_the_closure_back_at_the_close_or_a_shrink() {
    let _watch = watch!();
    for shrink in [true, false] {
        let budget = budget(100);
        let executor = builder(1, &budget).capacity(0).build().unwrap();
        let blocker = Blocker::on(executor.default_lane(), 1);
        let live = Live::default();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let (lane, one) = (executor.default_lane().clone(), live.one());
                aside(move || lane.submit(Cost::new(50), move || drop(one)).map(drop).unwrap_err())
            })
            .collect();
        until(|| executor.stats().lanes[0].blocked_submits == 4);
        if shrink {
            budget.resize(49, 0);
        } else {
            executor.close();
        }
        for waiter in waiters {
            let SubmitError { reason, work } = waiter.recv().unwrap();
            match reason {
                Refused::NeverFits { admissible_bytes: 49, .. } => assert!(shrink),
                Refused::Closed => assert!(!shrink),
                other => panic!("{other}"),
            }
            work();
        }
        assert_eq!(live.count(), 0);
        assert_eq!(executor.stats().lanes[0].blocked_submits, 0);
        blocker.release();
    }
}
