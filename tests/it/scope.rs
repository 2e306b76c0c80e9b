//! Jobs that borrow: none outlives what it borrows, however the scope comes to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use admit::{Cost, JoinError, MapError, Refused};

use crate::kit::{Live, OnDrop, budget, builder, executor, until};
use crate::watchdog::watch;

#[test]
fn jobs_write_through_what_they_borrow_before_the_scope_returns() {
    let _watch = watch!();
    let (executor, budget) = executor(4, 100);
    for _ in 0..200 {
        let mut numbers = [0_usize; 16];
        let returned = executor.scope(|scope| {
            for (n, number) in numbers.iter_mut().enumerate() {
                drop(scope.submit(Cost::new(40), move || *number = n).unwrap());
            }
            "returned"
        });
        assert_eq!(returned, "returned");
        assert!(numbers.iter().enumerate().all(|(n, number)| n == *number));
        assert_eq!(budget.ledger().held_bytes, 0);
    }
}

#[test]
fn a_panic_in_the_body_goes_on_after_every_job_has_ended() {
    let _watch = watch!();
    let executor = executor(2, 100).0;
    let ended = AtomicUsize::new(0);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        executor.scope(|scope| {
            let jobs = [(); 10].map(|()| {
                let work = || {
                    (0..50).for_each(|_| std::thread::yield_now());
                    ended.fetch_add(1, Ordering::SeqCst);
                };
                scope.submit(Cost::new(60), work).unwrap()
            });
            assert!(jobs.is_empty(), "the body");
        });
    }));
    let payload = unwound.unwrap_err();
    assert!(payload.downcast_ref::<String>().or(None).is_some() || payload.is::<&str>());
    assert_eq!(ended.load(Ordering::SeqCst), 10);
}

#[test]
fn a_panic_in_a_job_is_its_handles_and_not_the_scopes() {
    let _watch = watch!();
    let executor = executor(2, 100).0;
    let text = String::from("borrowed");
    let (bad, good) = executor.scope(|scope| {
        let bad = scope.submit(Cost::new(1), || -> usize { panic!("{text}") }).unwrap();
        drop(scope.submit(Cost::new(1), || panic!("detached {text}")).unwrap());
        let good = scope.submit(Cost::new(1), || text.len()).unwrap();
        (bad.join(), good.join())
    });
    match bad.unwrap_err() {
        JoinError::Panicked(panic) => assert_eq!(panic.message().unwrap(), "borrowed"),
        other => panic!("{other}"),
    }
    assert_eq!(good.unwrap(), 8);
    assert_eq!(executor.stats().counts.panicked, 2);
}

#[test]
fn every_part_of_a_job_is_dropped_before_the_scope_returns() {
    let _watch = watch!();
    let executor = executor(2, 100).0;
    for round in 0..600 {
        let (live, drops) = (Live::default(), AtomicUsize::new(0));
        executor.scope(|scope| {
            // The result borrows, and its drop touches what it borrows.
            let drops = &drops;
            let (captured, result) = (live.one(), live.one());
            let handle = scope.submit(Cost::new(60), move || {
                let _captured = captured;
                OnDrop::new(move || {
                    drop(result);
                    drops.fetch_add(1, Ordering::SeqCst);
                })
            });
            let handle = handle.unwrap();
            match round % 6 {
                0 => drop(handle),
                1 => drop(handle.join().unwrap()),
                2 => drop(handle.cancel()),
                3 => {
                    until(|| handle.is_finished());
                    drop(handle);
                }
                4 => drop(handle.try_join()),
                _ => {
                    let detached = scope.submit(Cost::new(60), move || drop(handle.join()));
                    drop(detached);
                }
            }
        });
        assert_eq!(live.count(), 0, "round {round}");
        assert!(drops.into_inner() == 1 || round % 6 == 2);
    }
}

#[test]
fn a_handle_dropped_at_the_moment_of_the_jobs_end_leaves_nothing_to_drop_after_the_scope() {
    let _watch = watch!();
    let executor = executor(1, 100).0;
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..10_000 {
        let (live, ending) = (Live::default(), AtomicUsize::new(0));
        executor.scope(|scope| {
            let work = || {
                let result = live.one();
                ending.store(1, Ordering::Release);
                result
            };
            let handle = scope.submit(Cost::new(1), work).unwrap();
            until(|| ending.load(Ordering::Acquire) == 1);
            (0..rng.u32(0..200)).for_each(|_| std::hint::spin_loop());
            drop(handle);
        });
        assert_eq!(live.count(), 0, "round {round}");
    }
}

#[test]
fn a_leaked_handle_leaks_its_value_and_nothing_touches_it_later() {
    let _watch = watch!();
    let executor = executor(2, 100).0;
    let (drops, live) = (AtomicUsize::new(0), Live::default());
    {
        let drops = &drops;
        executor.scope(|scope| {
            for _ in 0..50 {
                let captured = live.one();
                let work = move || {
                    drop(captured);
                    OnDrop::new(move || _ = drops.fetch_add(1, Ordering::SeqCst))
                };
                std::mem::forget(scope.submit(Cost::new(60), work).unwrap());
            }
        });
        assert_eq!(live.count(), 0);
    }
    drop(executor);
    assert_eq!(drops.into_inner(), 0);
}

#[test]
fn a_refused_job_of_a_scope_comes_back_and_is_not_waited_for() {
    let _watch = watch!();
    let executor = builder(1, &budget(10)).capacity(0).build().unwrap();
    let text = String::from("borrowed");
    let (release, wait) = crossbeam_channel::bounded::<()>(0);
    let length = executor.scope(|scope| {
        let wait = &wait;
        drop(scope.submit(Cost::new(1), move || wait.recv().is_err()).unwrap());
        let full = scope.try_submit(Cost::new(1), || text.len()).map(drop).unwrap_err();
        assert!(matches!(full.reason, Refused::Full(_)));
        let never = scope.submit(Cost::new(11), || text.len()).map(drop).unwrap_err();
        assert!(matches!(never.reason, Refused::NeverFits { .. }));
        executor.close();
        let closed = scope.submit(Cost::new(1), || text.len()).map(drop).unwrap_err();
        assert_eq!(closed.reason, Refused::Closed);
        drop(release);
        (full.work)() + (never.work)() + (closed.work)()
    });
    assert_eq!(length, 24);
}

#[test]
fn scopes_nest_across_executors() {
    let _watch = watch!();
    let (outer, inner) = (executor(2, 100).0, executor(2, 100).0);
    let sums: Vec<AtomicUsize> = (0..8).map(|_| AtomicUsize::new(0)).collect();
    outer.scope(|scope| {
        for sum in &sums {
            let inner = &inner;
            let work = move || {
                inner.scope(|scope| {
                    for n in 1..=10 {
                        let add = move || sum.fetch_add(n, Ordering::SeqCst);
                        drop(scope.submit(Cost::new(30), add).unwrap());
                    }
                });
                assert_eq!(sum.load(Ordering::SeqCst), 55);
            };
            drop(scope.submit(Cost::new(30), work).unwrap());
        }
    });
    assert!(sums.into_iter().all(|sum| sum.into_inner() == 55));
    assert_eq!(outer.stats().counts.panicked, 0);
}

#[test]
fn a_map_of_a_scope_borrows_its_items_and_gives_results_that_borrow() {
    let _watch = watch!();
    let executor = executor(3, 100).0;
    let texts: Vec<String> = (0..100).map(|n| format!("{n} and {n}")).collect();
    let separator = String::from(" and ");
    let firsts: Vec<&str> = executor.scope(|scope| {
        let split = |text: &'_ String| -> usize { text.find(separator.as_str()).unwrap() };
        let ends = scope.map(&texts, |text| Cost::new(text.len() as u64), split);
        ends.zip(&texts).map(|(end, text)| &text[..end.unwrap()]).collect()
    });
    assert!(firsts.iter().enumerate().all(|(n, first)| *first == n.to_string()));

    let never = executor.scope(|scope| scope.map([1], |_| Cost::new(101), |n: u8| n).next());
    assert!(matches!(never, Some(Err(MapError::Refused(Refused::NeverFits { .. })))));
}
