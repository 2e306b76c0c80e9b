//! Faults that were found by trying to break the crate, each as the property that it broke.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use admit::{AcquireError, Cost, Executor, Handle, JoinError, MIB, Refused};

use crate::child;
use crate::kit::{Blocker, OnDrop, aside, budget, builder, executor, until};
use crate::watchdog::watch;

#[test]
fn a_cancel_of_a_waiting_job_that_owns_the_executor_returns() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = Arc::new(builder(1, &budget).build().unwrap());
    let held = budget.acquire(10).unwrap();
    let inner = Arc::clone(&executor);
    let waits = executor.submit(Cost::new(10), move || drop(inner)).unwrap();
    drop(executor);
    assert!(waits.cancel());
    drop(held);
}

#[test]
fn a_resize_that_evicts_a_job_that_owns_the_executor_returns() {
    let _watch = watch!();
    let budget = budget(10);
    let executor = Arc::new(builder(1, &budget).build().unwrap());
    let held = budget.acquire(5).unwrap();
    let inner = Arc::clone(&executor);
    let waits = executor.submit(Cost::new(10), move || drop(inner)).unwrap();
    drop(executor);
    budget.resize(5, 0);
    assert!(matches!(waits.join(), Err(JoinError::NeverFits { .. })));
    drop(held);
}

#[test]
fn a_drain_in_the_drop_of_a_cancelled_closure_is_refused_and_not_for_ever() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 10);
    let executor = Arc::new(executor);
    let held = budget.acquire(10).unwrap();
    let inner = Arc::clone(&executor);
    let captured = OnDrop::new(move || _ = inner.drain());
    let waits = executor.submit(Cost::new(10), move || drop(captured)).unwrap();
    assert!(waits.cancel());
    drop(held);
}

#[test]
fn an_abort_of_a_job_that_joins_a_later_one_in_its_drop_returns() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 10);
    let held = budget.acquire(10).unwrap();
    let (send, receive) = crossbeam_channel::bounded::<Handle<()>>(1);
    let captured = OnDrop::new(move || drop(receive.recv().unwrap().join()));
    let _first = executor.submit(Cost::new(10), move || drop(captured)).unwrap();
    send.send(executor.submit(Cost::new(10), || ()).unwrap()).unwrap();
    assert_eq!(executor.abort_waiting(), 2);
    drop(held);
}

#[test]
fn a_job_does_not_wait_for_a_job_of_another_executor_that_waits_for_its_bytes() {
    let _watch = watch!();
    let budget = budget(10);
    let outer = builder(1, &budget).build().unwrap();
    let inner = Arc::new(builder(1, &budget).build().unwrap());
    let job = outer
        .submit(Cost::new(6), move || inner.submit(Cost::new(7), || ()).unwrap().join().is_err());
    assert!(job.unwrap().join().unwrap());
}

#[test]
fn a_job_does_not_wait_for_a_place_behind_a_job_that_waits_for_its_bytes() {
    let _watch = watch!();
    let budget = budget(10);
    let outer = builder(1, &budget).build().unwrap();
    let inner = Arc::new(builder(1, &budget).capacity(0).build().unwrap());
    let job = outer.submit(Cost::new(6), move || {
        inner.submit(Cost::new(6), || ()).map(drop).unwrap_err().reason
    });
    assert_eq!(job.unwrap().join().unwrap(), Refused::OwnWorker);
}

#[test]
fn after_a_drain_every_handle_is_resolved() {
    let _watch = watch!();
    for round in 0..4000 {
        let budget = budget(10);
        let executor = Arc::new(builder(1, &budget).build().unwrap());
        let held = budget.acquire(10).unwrap();
        let waits = Arc::new(executor.submit(Cost::new(10), || ()).unwrap());
        executor.close();
        let inner = Arc::clone(&waits);
        let cancel = aside(move || inner.cancel());
        while executor.stats().workers > 0 {
            std::thread::yield_now();
        }
        executor.drain().unwrap();
        assert!(waits.is_finished(), "not after {round} rounds");
        assert!(cancel.recv().unwrap());
        drop(held);
    }
}

#[test]
fn a_job_that_would_wait_for_ever_is_refused_for_the_longest_timeout_too() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 10);
    let job = executor.submit(Cost::new(6), move || {
        budget.acquire_timeout(6, Duration::MAX).map(drop).unwrap_err()
    });
    assert_eq!(job.unwrap().join().unwrap(), AcquireError::OwnWorker);
}

#[test]
fn a_worker_that_would_join_for_ever_is_refused_for_the_longest_timeout_too() {
    let _watch = watch!();
    let executor = Arc::new(executor(1, 10).0);
    let inner = Arc::clone(&executor);
    let job = executor.submit(Cost::new(6), move || {
        let waits = inner.submit(Cost::new(7), || ()).unwrap();
        matches!(waits.join_timeout(Duration::MAX), Ok(Err(JoinError::AboveOwn { .. })))
    });
    assert!(job.unwrap().join().unwrap());
}

static SCOPE_LEFT: AtomicBool = AtomicBool::new(false);
static TOUCHED_LATE: AtomicUsize = AtomicUsize::new(0);

static KEY: AtomicU32 = AtomicU32::new(0);
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn scope_in_a_key_destructor(executor: *mut libc::c_void) {
    if ROUNDS.fetch_add(1, Ordering::SeqCst) < 2 {
        // In the third round std's own last destructor is through.
        // SAFETY: the key exists, and its destructor gets what it expects.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::SeqCst), executor) };
        return;
    }
    // SAFETY: the test put it there, and this is the only round that takes it.
    let executor = unsafe { Box::from_raw(executor.cast::<Arc<Executor>>()) };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let local = AtomicUsize::new(0);
        executor.scope(|scope| {
            let work = || {
                for _ in 0..3_000_000 {
                    if SCOPE_LEFT.load(Ordering::SeqCst) {
                        break;
                    }
                    std::thread::yield_now();
                }
                if SCOPE_LEFT.load(Ordering::SeqCst) {
                    // `local` is gone: touching it would be undefined.
                    TOUCHED_LATE.fetch_add(1, Ordering::SeqCst);
                } else {
                    local.fetch_add(1, Ordering::SeqCst);
                }
            };
            drop(scope.submit(Cost::new(1), work).unwrap());
        });
    }));
    SCOPE_LEFT.store(true, Ordering::SeqCst);
    drop(result);
}

#[test]
fn a_scope_does_not_end_before_its_jobs_in_the_last_moments_of_a_thread() {
    let _watch = watch!();
    let executor = Arc::new(executor(1, 10).0);
    let inner = Arc::clone(&executor);
    let thread = std::thread::spawn(move || {
        let mut key = 0;
        // SAFETY: the key is made before it is used, and its destructor gets what it expects.
        unsafe {
            assert_eq!(libc::pthread_key_create(&mut key, Some(scope_in_a_key_destructor)), 0);
            KEY.store(key, Ordering::SeqCst);
            let value = Box::into_raw(Box::new(inner)).cast();
            assert_eq!(libc::pthread_setspecific(key, value), 0);
        }
    });
    thread.join().unwrap();
    until(|| SCOPE_LEFT.load(Ordering::SeqCst));
    executor.drain().unwrap();
    assert_eq!(TOUCHED_LATE.load(Ordering::SeqCst), 0, "a job outlived what it borrows");
}

#[test]
fn a_build_does_not_set_aside_bytes_that_are_held() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let blocker = Blocker::on(executor.default_lane(), 100);
    let built = builder(1, &budget).waiting_bytes(50).build();
    let ledger = budget.ledger();
    assert!(ledger.held_bytes <= ledger.admissible_bytes(), "{ledger}");
    drop(built);
    blocker.release();
}

#[test]
fn a_build_that_fails_evicts_nobody() {
    let _watch = watch!();
    if !child::is_child() {
        return child::run("regressions::a_build_that_fails_evicts_nobody");
    }
    let (executor, budget) = executor(1, 100);
    let blocker = Blocker::on(executor.default_lane(), 100);
    let waits = executor.submit(Cost::new(100), || ()).unwrap();
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    child::limit_address_space(pages * 4096 + 1000 * MIB);
    let stack = 256 * MIB as usize;
    assert!(builder(100, &budget).waiting_bytes(1).stack_bytes(stack).build().is_err());
    blocker.release();
    waits.join().unwrap();
}

#[test]
fn what_is_dropped_in_a_forked_child_takes_no_lock() {
    let _watch = watch!();
    if !child::is_child() {
        return child::run("regressions::what_is_dropped_in_a_forked_child_takes_no_lock");
    }
    let budget = budget(100);
    let mut permit = Some(budget.acquire(10).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, hammered) = (Arc::clone(&stop), budget.clone());
    let hammer = aside(move || {
        while !stopped.load(Ordering::SeqCst) {
            drop(hammered.try_acquire(1));
        }
    });
    for _ in 0..500 {
        let code = child::fork(|| {
            // SAFETY: always sound to call.
            unsafe { libc::alarm(5) };
            drop(permit.take());
            0
        });
        assert_eq!(code, 0);
    }
    stop.store(true, Ordering::SeqCst);
    hammer.recv().unwrap();
}
