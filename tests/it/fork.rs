//! After a fork there are no workers: everything says so, and nothing waits for them.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use admit::{
    AcquireError, Budget, BuildError, Cost, DetectError, DrainError, Executor, JoinError, Refused,
};

use crate::child;
use crate::kit::{Blocker, Live, budget, builder, until};
use crate::watchdog::watch;

/// Ends with the number of the first check that fails.
fn check(
    parents: &Budget,
    executor: Executor,
    joins: admit::Handle<u8>,
    waits: admit::Handle<u8>,
) -> i32 {
    let live = Live::default();
    for patience in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
        let one = live.one();
        let work = move || drop(one);
        let refused = match patience {
            None => executor.try_submit(Cost::new(1), work),
            Some(timeout) => executor.submit_timeout(Cost::new(1), timeout, work),
        };
        match refused {
            Err(refused) if refused.reason == Refused::Forked && live.count() == 1 => {}
            _ => return 1,
        }
    }
    if !matches!(executor.submit(Cost::new(u64::MAX), || ()), Err(e) if e.reason == Refused::Forked)
    {
        return 2;
    }
    if waits.cancel() || executor.abort_waiting() != 0 {
        return 3;
    }
    if !matches!(joins.join(), Err(JoinError::Forked)) {
        return 4;
    }
    if executor.drain() != Err(DrainError::Forked) {
        return 5;
    }
    if executor.drain_timeout(Duration::MAX) != Err(DrainError::Forked) {
        return 6;
    }
    executor.close();
    let mut map = executor.map(0..2, |_| Cost::new(1), |n: u8| n);
    if !matches!(map.next(), Some(Err(admit::MapError::Refused(Refused::Forked)))) {
        return 7;
    }
    if map.next().is_some() {
        return 8;
    }
    let scoped = executor.scope(|scope| scope.submit(Cost::new(1), || ()).map(drop).is_err());
    if !scoped {
        return 9;
    }
    if !matches!(parents.try_acquire(1), Err(AcquireError::Forked))
        || !matches!(parents.acquire(1), Err(AcquireError::Forked))
    {
        return 11;
    }
    let on_parents = || Executor::builder().workers(1).budget(parents.clone());
    if !matches!(on_parents().plan(), Err(BuildError::Forked))
        || !matches!(on_parents().build(), Err(BuildError::Forked))
    {
        return 12;
    }
    // What has no error to give panics, rather than wait for a lock of the parent's.
    let panics = |look: &dyn Fn()| catch_unwind(AssertUnwindSafe(look)).is_err();
    let lane = executor.default_lane();
    let looks: [&dyn Fn(); 6] = [
        &|| drop(executor.stats()),
        &|| _ = lane.predicted_wait(),
        &|| drop(executor.lane("default")),
        &|| _ = parents.ledger(),
        &|| parents.resize(100, 0),
        &|| parents.set_overtaking(admit::Overtaking::NONE),
    ];
    if !looks.into_iter().all(panics) || format!("{parents:?}").contains("held") {
        return 13;
    }
    drop(executor);
    drop(waits);
    // Executors that are built here are the child's own.
    let own = builder(2, &budget(10)).build().unwrap();
    let sum = own.submit(Cost::new(10), || 7).unwrap().join();
    if sum.unwrap() == 7 { 0 } else { 10 }
}

#[test]
fn a_forked_child_is_refused_everything_and_can_let_go() {
    let _watch = watch!();
    if !child::is_child() {
        return child::run("fork::a_forked_child_is_refused_everything_and_can_let_go");
    }
    let budget = budget(100);
    let executor = builder(2, &budget).waiting_bytes(10).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 60);
    let [joins, waits] =
        [60, 61].map(|bytes| executor.submit(Cost::new(bytes), move || bytes as u8).unwrap());
    let done = executor.submit(Cost::new(0), || 1_u8).unwrap();
    drop(done);
    let mut parts = Some((executor, joins, waits));
    let code = child::fork(|| {
        let (executor, joins, waits) = parts.take().unwrap();
        check(&budget, executor, joins, waits)
    });
    assert_eq!(code, 0, "the number of the check in the child that failed");

    // The parent has noticed nothing.
    let (executor, joins, waits) = parts.take().unwrap();
    assert_eq!(executor.stats().counts.refused_closed, 0);
    blocker.release();
    assert_eq!(joins.join().unwrap(), 60);
    assert_eq!(waits.join().unwrap(), 61);
    executor.drain().unwrap();
    drop(executor);
    until(|| budget.ledger().waiting_limit_bytes == 0);
}

#[test]
fn a_child_of_a_job_is_refused_as_forked_too() {
    let _watch = watch!();
    if !child::is_child() {
        return child::run("fork::a_child_of_a_job_is_refused_as_forked_too");
    }
    let executor = std::sync::Arc::new(builder(1, &budget(100)).build().unwrap());
    let inner = std::sync::Arc::clone(&executor);
    let job = executor.submit(Cost::new(1), move || {
        child::fork(|| {
            let refused = inner.submit(Cost::new(1), || ()).map(drop).unwrap_err();
            i32::from(refused.reason != Refused::Forked || inner.drain() != Err(DrainError::Forked))
        })
    });
    assert_eq!(job.unwrap().join().unwrap(), 0);
}

#[test]
fn a_child_finds_a_budget_while_its_parent_looks_for_one() {
    let _watch = watch!();
    if !child::is_child() {
        return child::run("fork::a_child_finds_a_budget_while_its_parent_looks_for_one");
    }
    let kept = Budget::detect().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(Budget::detect().unwrap());
                }
            });
        }
        for _ in 0..20 {
            let code = child::fork(|| {
                let is_refused = matches!(kept.redetect(), Err(DetectError::Forked));
                let own = Budget::detect().unwrap();
                let is_apart = own.try_acquire(1).is_ok() && kept.try_acquire(1).is_err();
                let has_worked = Executor::builder()
                    .workers(1)
                    .build()
                    .is_ok_and(|executor| executor.submit(Cost::new(1), || ()).is_ok());
                i32::from(!(is_refused && kept.found().is_none() && is_apart && has_worked))
            });
            assert_eq!(code, 0);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
