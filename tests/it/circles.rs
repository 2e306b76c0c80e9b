//! Waits that would never end, and what is said instead.

use std::panic::panic_any;
use std::sync::Arc;
use std::thread;

use admit::{AcquireError, Budget, Context, Cost, DrainError, Executor, Handle, JoinError};
use crossbeam_channel::bounded;

use crate::kit::{Blocker, OnDrop, budget, builder, until};
use crate::watchdog::watch;

/// An executor of one worker, on a budget of its own.
fn one() -> (Arc<Executor>, Budget) {
    let budget = budget(100);
    (Arc::new(builder(1, &budget).build().unwrap()), budget)
}

/// Submits a job to an executor that is busy, and has a job of the other one join it: it runs there.
fn run_within<T: Send + 'static>(
    its: &Executor,
    other: &Executor,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let busy = Blocker::on(its.default_lane(), 1);
    let child = its.submit(Cost::new(1), job).unwrap();
    let value = other.submit(Cost::new(1), move || child.join().unwrap()).unwrap();
    let value = value.join().unwrap();
    busy.release();
    value
}

#[test]
fn a_job_that_runs_within_one_of_another_executor_may_not_wait_for_the_end_of_its_own() {
    let _watch = watch!();
    let ((mine, _), (other, _)) = (one(), one());
    let inner = Arc::clone(&mine);
    assert_eq!(run_within(&mine, &other, move || inner.drain()), Err(DrainError::OwnWorker));
    drop(mine);

    // Dropping the executor there does not wait.
    let mine = builder(1, &budget(100)).build().unwrap();
    let (give, taken) = bounded::<Executor>(1);
    let busy = Blocker::on(mine.default_lane(), 1);
    let child = mine.submit(Cost::new(1), move || drop(taken.recv().unwrap())).unwrap();
    give.send(mine).unwrap();
    other.submit(Cost::new(1), move || child.join().unwrap()).unwrap().join().unwrap();
    busy.release();
}

#[test]
fn a_job_within_another_may_not_wait_for_one_that_waits_for_the_end_of_its_own_executor() {
    let _watch = watch!();
    for drains_first in [true, false] {
        let ((mine, _), (other, _), (third, _)) = (one(), one(), one());
        let inner = Arc::clone(&mine);
        let told = run_within(&mine, &other, move || {
            let closed = Arc::clone(&inner);
            let (go, goes) = bounded::<()>(0);
            let drains = third.submit(Cost::new(1), move || {
                let _ = goes.recv();
                inner.drain()
            });
            let drains = drains.unwrap();
            if drains_first {
                drop(go);
                until(|| closed.stats().is_closed);
            } else {
                // Soon after this job has begun to wait.
                thread::spawn(move || drop(go));
            }
            // Whichever of the two comes to wait last is told.
            match drains.join() {
                Ok(drained) => drained == Err(DrainError::Circle),
                Err(error) => matches!(error, JoinError::Circle),
            }
        });
        assert!(told);
    }
}

/// The closure is dropped on a worker of the other executor, whose job has all of its budget.
#[test]
fn the_drop_of_a_closure_may_not_wait_for_the_budget_of_the_job_that_ends_it() {
    let _watch = watch!();
    let ((mine, my_budget), (other, its_budget)) = (one(), one());
    let hold = its_budget.acquire(100).unwrap();
    let (told, tells) = bounded(1);
    let guard = OnDrop::new(move || told.send(my_budget.acquire(100).map(drop)).unwrap());
    let ended = other.submit(Cost::new(1), move || drop(guard)).unwrap();
    assert!(mine.submit(Cost::new(100), move || ended.cancel()).unwrap().join().unwrap());
    assert_eq!(tells.recv().unwrap(), Err(AcquireError::OwnWorker));
    drop(hold);
}

#[test]
fn a_job_of_a_scope_may_not_wait_for_the_job_that_waits_for_the_scope() {
    let _watch = watch!();
    let ((mine, my_budget), (other, _)) = (one(), one());
    let (told, tells) = bounded(1);
    let job = move || {
        other.scope(|scope| {
            let acquire = || told.send(my_budget.acquire(1).map(drop)).unwrap();
            drop(scope.submit(Cost::new(1), acquire).unwrap());
        });
    };
    mine.submit(Cost::new(100), job).unwrap().join().unwrap();
    assert_eq!(tells.recv().unwrap(), Err(AcquireError::Circle));
}

/// What a payload's drop waits for is waited for by the job that panicked with it, whose next job its
/// worker does not have yet.
#[test]
fn the_payload_of_a_detached_job_is_dropped_before_its_worker_has_another_job() {
    let _watch = watch!();
    let ((mine, _), (other, _)) = (one(), one());
    let (give, taken) = bounded::<Handle<()>>(1);
    let joins_next = other.submit(Cost::new(1), move || taken.recv().unwrap().join().unwrap());
    let (begins, has_begun) = bounded(1);
    let joins_next = joins_next.unwrap();
    let payload = OnDrop::new(move || {
        begins.send(()).unwrap();
        joins_next.join().unwrap();
    });
    let (go, goes) = bounded::<()>(0);
    let (started, is_started) = bounded(1);
    let panics = mine.submit(Cost::new(1), move || -> () {
        started.send(()).unwrap();
        let _ = goes.recv();
        panic_any(payload)
    });
    drop(panics.unwrap());
    is_started.recv().unwrap();
    let next = mine.submit(Cost::new(1), || ()).unwrap();
    drop(go);
    has_begun.recv().unwrap();
    give.send(next).unwrap();
    mine.drain().unwrap();
    assert_eq!((mine.stats().counts.panicked, mine.stats().counts.completed), (1, 1));
}

#[test]
fn a_context_keeps_no_payload_of_a_detached_job() {
    let _watch = watch!();
    let (executor, _) = one();
    for detach_first in [true, false] {
        let (dropped, is_dropped) = bounded(1);
        let payload = OnDrop::new(move || dropped.send(()).unwrap());
        let (give, taken) = bounded(1);
        let (go, goes) = bounded::<()>(0);
        let handle = executor.submit(Cost::new(1), move || -> () {
            give.send(Context::current().unwrap()).unwrap();
            let _ = goes.recv();
            panic_any(payload)
        });
        let (handle, context) = (handle.unwrap(), taken.recv().unwrap());
        if detach_first {
            drop((handle, go));
        } else {
            drop(go);
            until(|| handle.is_finished());
            drop(handle);
        }
        is_dropped.recv().unwrap();
        drop(context);
    }
}
