//! Tasks that submit and wait, and places that are reserved.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use shuttle::thread;

use super::{assert_all_returned, check, executor};
use crate::{Budget, Cost, Executor, Refused};

#[test]
fn tasks_and_threads_that_submit_and_wait_are_all_woken() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 1, &budget));
        let task = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                shuttle::future::block_on(async {
                    let one = executor.submit_async(Cost::new(7), || 1);
                    let two = executor.submit_async(Cost::new(7), || 2);
                    let (two, one) = (two.await.expect("open"), one.await.expect("open"));
                    two.await.expect("runs") + one.await.expect("runs")
                })
            })
        };
        let handle = executor.submit(Cost::new(7), || 3).expect("open");
        assert_eq!(handle.join().expect("runs") + task.join().expect("no panic"), 6);
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn tasks_that_are_dropped_while_they_wait_strand_nobody_and_leave_nothing() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 1, &budget));
        let task = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                let mut submitting = executor.submit_async(Cost::new(7), || 1);
                let mut context = task::Context::from_waker(Waker::noop());
                match Pin::new(&mut submitting).poll(&mut context) {
                    Poll::Pending => drop(submitting),
                    Poll::Ready(handle) => {
                        let mut handle = handle.expect("open").cancel_on_drop();
                        let _ = Pin::new(&mut handle).poll(&mut context);
                    }
                }
            })
        };
        let handles = [2, 3].map(|n| executor.submit(Cost::new(7), move || n).expect("open"));
        for (handle, n) in handles.into_iter().zip([2, 3]) {
            assert_eq!(handle.join().expect("runs"), n);
        }
        task.join().expect("no panic");
        executor.drain().expect("not a worker");
        let counts = executor.stats().counts;
        assert_eq!(counts.completed + counts.cancelled, 3);
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn a_waker_that_is_replaced_while_the_job_ends_is_the_one_that_is_woken() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(1, 1, &budget);
        let handle = executor.submit(Cost::new(7), || 1).expect("open");
        let value = shuttle::future::block_on(async move {
            let mut handle = handle;
            // By another waker at first, as if it had been moved.
            let mut context = task::Context::from_waker(Waker::noop());
            if let Poll::Ready(value) = Pin::new(&mut handle).poll(&mut context) {
                return value;
            }
            handle.await
        });
        assert_eq!(value.expect("runs"), 1);
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn places_that_are_used_or_given_up_strand_nobody() {
    check(|| {
        let budget = Budget::new(20, 0).expect("no reserve");
        let builder = Executor::builder().workers(1).capacity(1).budget(budget.clone());
        let executor = Arc::new(builder.waiting_bytes(4).build().expect("threads"));
        let reserves = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                for uses in [true, false] {
                    match executor.default_lane().try_reserve(Cost::new(7).input(2)) {
                        Ok(mut place) => {
                            let _ = place.declare(Cost::new(7).input(3));
                            if uses {
                                place.submit(|| ()).expect("open").join().expect("runs");
                            }
                        }
                        Err(refused) => assert!(matches!(refused, Refused::Full(_))),
                    }
                }
            })
        };
        let handles =
            [2, 3].map(|n| executor.submit(Cost::new(7).input(2), move || n).expect("open"));
        for (handle, n) in handles.into_iter().zip([2, 3]) {
            assert_eq!(handle.join().expect("runs"), n);
        }
        reserves.join().expect("no panic");
        assert_eq!(executor.stats().waiting_input_bytes, 0);
        drop(executor);
        assert_all_returned(&budget);
    });
}
