//! The locking and waking under shuttle's scheduler, which decides who runs at every lock,
//! atomic and park. `RUSTFLAGS="--cfg admit_shuttle" cargo test --lib interleavings`
//!
//! The oracle is the same everywhere: a model that comes to a state in which nobody can run
//! fails as a deadlock, so every lost wake-up and every stranded waiter is found as one; a
//! double grant fails the assertions I1 and I3 of the ledger. In a model time may run out at
//! any moment (see `sync::park_timeout`).

mod tasks;

use std::sync::Arc;
use std::time::Duration;

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::{Budget, Context, Cost, Executor, JoinError, LaneOptions, Refused};

const RANDOM_RUNS: usize = 10_000;

fn check(model: fn()) {
    shuttle::check_random(model, RANDOM_RUNS);
    // Depth 3: up to three preemptions at the least likely places, which covers the races
    // between two sides and a third party.
    shuttle::check_pct(model, RANDOM_RUNS, 3);
}

fn executor(workers: usize, capacity: usize, budget: &Budget) -> Executor {
    let builder = Executor::builder().workers(workers).capacity(capacity);
    builder.budget(budget.clone()).build().expect("threads")
}

fn assert_all_returned(budget: &Budget) {
    let ledger = budget.ledger();
    assert_eq!((ledger.held_bytes, ledger.waiting_limit_bytes), (0, 0));
}

#[test]
fn every_submitted_job_runs_and_its_joiner_is_woken() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(2, 1, &budget));
        let producers: Vec<_> = (0..2)
            .map(|producer| {
                let executor = Arc::clone(&executor);
                thread::spawn(move || {
                    for job in 0..2 {
                        let number = 10 * producer + job;
                        let handle = executor.submit(Cost::new(7), move || number);
                        assert_eq!(handle.expect("open").join().expect("runs"), number);
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().expect("no panic");
        }
        drop(executor);
        assert_all_returned(&budget);
    });
}

/// A worker that finds a job which is meant for one of the other rank has to call that one.
#[test]
fn workers_of_either_rank_are_called_for_what_is_meant_for_them() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let builder = Executor::builder().workers(2).nice_beyond(1).budget(budget.clone());
        let light = LaneOptions::new("light").guaranteed_workers(1);
        let executor = Arc::new(builder.lane(light).build().expect("threads"));
        let light = executor.lane("light").expect("it was asked for");
        let producer = thread::spawn(move || {
            for _ in 0..2 {
                light.submit(Cost::new(4), || ()).expect("open").join().expect("runs");
            }
        });
        let heavy: Vec<_> =
            (0..2).map(|_| executor.submit(Cost::new(5), || ()).expect("open")).collect();
        heavy[0].cancel();
        for handle in heavy {
            match handle.join() {
                Ok(()) | Err(JoinError::Cancelled) => {}
                other => panic!("{other:?}"),
            }
        }
        producer.join().expect("no panic");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn detached_jobs_are_drained_whoever_submits_and_whichever_way() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(2, 2, &budget);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let ran = Arc::clone(&ran);
            let handle = executor.submit(Cost::new(4), move || ran.fetch_add(1, Ordering::SeqCst));
            drop(handle.expect("open"));
        }
        executor.drain().expect("not a worker");
        assert_eq!(ran.load(Ordering::SeqCst), 4);
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn submit_finish_cancel_and_close_strand_nobody() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 1, &budget));
        let first = executor.submit(Cost::new(10), || ()).expect("open");
        let closer = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || executor.close())
        };
        let producer = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                for _ in 0..2 {
                    match executor.submit(Cost::new(10), || ()) {
                        Ok(handle) => {
                            handle.cancel();
                            match handle.join() {
                                Ok(()) | Err(JoinError::Cancelled) => {}
                                other => panic!("{other:?}"),
                            }
                        }
                        Err(refused) => assert_eq!(refused.reason, Refused::Closed),
                    }
                }
            })
        };
        first.join().expect("it was accepted");
        closer.join().expect("no panic");
        producer.join().expect("no panic");
        executor.drain().expect("not a worker");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn jobs_that_wait_for_each_other_find_a_worker_each() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(2, 2, &budget);
        let (to_second, from_first) = shuttle::sync::mpsc::channel();
        let (to_first, from_second) = shuttle::sync::mpsc::channel();
        let first = executor.submit(Cost::new(5), move || {
            to_second.send(()).expect("it waits");
            from_second.recv().expect("it answers");
        });
        let second = executor.submit(Cost::new(5), move || {
            to_first.send(()).expect("it waits");
            from_first.recv().expect("it answers");
        });
        first.expect("open").join().expect("met");
        second.expect("open").join().expect("met");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn whoever_is_blocked_when_the_executor_is_closed_gets_the_closure_back() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 0, &budget));
        let permit = budget.acquire(10).expect("free");
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let executor = Arc::clone(&executor);
                thread::spawn(move || {
                    let refused = executor.submit(Cost::new(10), || ()).expect_err("blocked");
                    assert_eq!(refused.reason, Refused::Closed);
                })
            })
            .collect();
        executor.close();
        for producer in producers {
            producer.join().expect("no panic");
        }
        drop((executor, permit));
        assert_all_returned(&budget);
    });
}

#[test]
fn a_submitter_that_gives_up_leaves_no_hole_for_the_next() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 1, &budget));
        let hasty = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                let work = || ();
                match executor.submit_timeout(Cost::new(1), Duration::from_secs(1), work) {
                    Ok(handle) => handle.join().expect("runs"),
                    Err(refused) => assert!(matches!(refused.reason, Refused::Full(_))),
                }
            })
        };
        let handles: Vec<_> =
            (0..3).map(|_| executor.submit(Cost::new(1), || ()).expect("open")).collect();
        for handle in handles {
            handle.join().expect("runs");
        }
        hasty.join().expect("no panic");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn a_lane_without_capacity_hands_over_every_job() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(2, 0, &budget));
        let other = {
            let executor = Arc::clone(&executor);
            thread::spawn(move || {
                let handle = executor.submit(Cost::new(6).input(1), || 1).expect("open");
                handle.join().expect("runs")
            })
        };
        let handle = executor.submit(Cost::new(6), || 2).expect("open");
        assert_eq!(handle.join().expect("runs") + other.join().expect("no panic"), 3);
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn permits_and_jobs_of_two_executors_share_a_budget_and_strand_nobody() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let one = executor(1, 1, &budget);
        let two = executor(1, 1, &budget);
        let acquirer = {
            let budget = budget.clone();
            thread::spawn(move || {
                let permit = budget.acquire(8).expect("fits");
                assert!(budget.ledger().held_bytes >= permit.bytes());
                drop(budget.acquire_timeout(3, Duration::from_secs(1)));
            })
        };
        let first = one.submit(Cost::new(6), || ()).expect("open");
        let second = two.submit(Cost::new(6), || ()).expect("open");
        first.join().expect("runs");
        second.join().expect("runs");
        acquirer.join().expect("no panic");
        drop((one, two));
        assert_all_returned(&budget);
    });
}

#[test]
fn a_budget_that_shrinks_resolves_whoever_can_never_be_admitted() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(1, 1, &budget);
        let resizer = {
            let budget = budget.clone();
            thread::spawn(move || {
                budget.resize(5, 0);
                budget.resize(10, 0);
            })
        };
        for _ in 0..2 {
            match executor.submit(Cost::new(8), || ()) {
                Ok(handle) => match handle.join() {
                    Ok(()) | Err(JoinError::NeverFits { .. }) => {}
                    other => panic!("{other:?}"),
                },
                Err(refused) => assert!(matches!(refused.reason, Refused::NeverFits { .. })),
            }
        }
        resizer.join().expect("no panic");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn dropping_the_executor_resolves_every_handle_also_from_its_own_worker() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let owner = Arc::new(executor(1, 2, &budget));
        let lane = owner.default_lane().clone();
        let last = Arc::clone(&owner);
        let dropper = owner.submit(Cost::new(10), move || drop(last)).expect("open");
        let waiting = owner.submit(Cost::new(10), || ()).expect("open");
        drop(owner);
        match waiting.join() {
            Ok(()) | Err(JoinError::Closed) => {}
            other => panic!("{other:?}"),
        }
        match dropper.join() {
            Ok(()) | Err(JoinError::Closed) => {}
            other => panic!("{other:?}"),
        }
        let refused = lane.submit(Cost::new(1), || ()).expect_err("the executor is gone");
        assert_eq!(refused.reason, Refused::Closed);
    });
}

#[test]
fn a_scope_ends_after_its_jobs_and_drops_what_nobody_takes() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(2, 1, &budget);
        let value = AtomicUsize::new(0);
        executor.scope(|scope| {
            for _ in 0..2 {
                let handle = scope.submit(Cost::new(6), || {
                    value.fetch_add(1, Ordering::SeqCst);
                    Guard(&value)
                });
                drop(handle.expect("open"));
            }
        });
        assert_eq!(value.load(Ordering::SeqCst), 0);
    });

    struct Guard<'a>(&'a AtomicUsize);

    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn lanes_of_one_executor_share_its_limit_of_waiting_bytes_in_order() {
    check(|| {
        let budget = Budget::new(12, 0).expect("no reserve");
        let executor = Executor::builder()
            .workers(1)
            .budget(budget.clone())
            .waiting_bytes(2)
            .lane(LaneOptions::new("second").capacity(2))
            .build()
            .expect("threads");
        let second = executor.lane("second").expect("built");
        let other = thread::spawn(move || {
            for _ in 0..2 {
                second.submit(Cost::new(8).input(2), || ()).expect("open").join().expect("runs");
            }
        });
        let handles: Vec<_> =
            (0..2).map(|_| executor.submit(Cost::new(8).input(2), || ()).expect("open")).collect();
        for handle in handles {
            handle.join().expect("runs");
        }
        other.join().expect("no panic");
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn jobs_that_wait_for_jobs_of_their_own_executor_end_whoever_runs_them() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(2, 1, &budget));
        let parents: Vec<_> = (0..2)
            .map(|_| {
                let inner = Arc::clone(&executor);
                let parent =
                    executor.submit(Cost::new(4), move || match inner.submit(Cost::new(4), || 1) {
                        Ok(child) => child.join().expect("runs"),
                        Err(refused) => {
                            assert_eq!(refused.reason, Refused::OwnWorker);
                            (refused.work)()
                        }
                    });
                parent.expect("open")
            })
            .collect();
        for parent in parents {
            assert_eq!(parent.join().expect("runs"), 1);
        }
        drop(executor);
        assert_all_returned(&budget);
    });
}

#[test]
fn executors_whose_jobs_wait_for_each_other_end_or_get_an_error() {
    check(|| {
        let budgets = [(); 2].map(|()| Budget::new(10, 0).expect("no reserve"));
        let executors = [0, 1].map(|at| Arc::new(executor(1, 1, &budgets[at])));
        let parents = [0, 1].map(|at| {
            let there = Arc::clone(&executors[1 - at]);
            // Larger than what the parent holds: it cannot run it.
            let parent = executors[at].submit(Cost::new(4), move || {
                match there.submit(Cost::new(8), || ()) {
                    Ok(child) => match child.join() {
                        Ok(()) | Err(JoinError::Circle) => {}
                        other => panic!("{other:?}"),
                    },
                    Err(refused) => assert_eq!(refused.reason, Refused::Circle),
                }
            });
            parent.expect("open")
        });
        for parent in parents {
            parent.join().expect("runs");
        }
        drop(executors);
        budgets.iter().for_each(assert_all_returned);
    });
}

#[test]
fn bytes_that_jobs_keep_and_grow_by_return_to_those_who_wait() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = executor(2, 2, &budget);
        let keep = || {
            let context = Context::current().expect("a job");
            // In some orders somebody waits already.
            let grown = context.grow(2).is_ok();
            let mut kept = context.keep(5).expect("it holds 6");
            kept.shrink_to(4);
            (kept.with(1), grown)
        };
        let first = executor.submit(Cost::new(6), keep).expect("open");
        let second = executor.submit(Cost::new(8), || ()).expect("open");
        let reader = thread::spawn(move || {
            let (lease, _) = first.join().expect("runs");
            assert_eq!((*lease, lease.bytes()), (1, 4));
        });
        second.join().expect("runs when the lease is gone");
        reader.join().expect("no panic");
        drop(executor);
        assert_all_returned(&budget);
    });
}

/// Times to start so short that in some orders all jobs are in time, and in others none is.
#[test]
fn jobs_start_in_time_or_expire_and_strand_nobody() {
    check(|| {
        let budget = Budget::new(10, 0).expect("no reserve");
        let executor = Arc::new(executor(1, 1, &budget));
        let producers: Vec<_> = [4, 12, 12]
            .map(|nanos| {
                let lane = executor.default_lane().start_within(Duration::from_nanos(nanos));
                thread::spawn(move || {
                    let mut ended = 0;
                    for job in 0..2 {
                        match lane.submit(Cost::new(7), move || job).map(|handle| handle.join()) {
                            Ok(Ok(number)) => assert_eq!(number, job),
                            Ok(Err(JoinError::Expired)) => ended += 1,
                            Err(refused) => {
                                assert_eq!(refused.reason, Refused::Expired);
                                ended += 1;
                            }
                            Ok(Err(other)) => panic!("{other}"),
                        }
                    }
                    ended
                })
            })
            .into_iter()
            .collect();
        let expired: u64 = producers.into_iter().map(|its| its.join().expect("no panic")).sum();
        let counts = executor.stats().counts;
        assert_eq!((counts.expired, counts.completed), (expired, 6 - expired));
        drop(executor);
        assert_all_returned(&budget);
    });
}
