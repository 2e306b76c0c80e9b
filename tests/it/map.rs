//! A function over a stream: in order, lazily, and never far ahead of the consumer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit::{Cost, JoinError, LaneOptions, MapError, Refused};

use crate::kit::{Live, budget, builder, executor, until};
use crate::watchdog::watch;

#[test]
fn results_come_in_the_order_of_the_items() {
    let _watch = watch!();
    let (executor, budget) = executor(4, 100);
    let mut rng = fastrand::Rng::with_seed(4);
    let cost = move |_: &u32| Cost::new(rng.u64(0..=100));
    let work = |n: u32| {
        (0..n % 7).for_each(|_| std::thread::yield_now());
        n
    };
    let results: Vec<u32> = executor.map(0..1000, cost, work).map(Result::unwrap).collect();
    assert_eq!(results, (0..1000).collect::<Vec<_>>());
    until(|| budget.ledger().held_bytes == 0);
}

#[test]
fn nothing_is_read_before_it_is_asked_for_and_never_more_than_lane_and_workers_hold() {
    let _watch = watch!();
    for (workers, capacity) in [(1, 0), (3, 0), (1, 1), (2, 5)] {
        let executor = builder(workers, &budget(100)).capacity(capacity).build().unwrap();
        let read = Arc::new(AtomicUsize::new(0));
        let items = {
            let read = Arc::clone(&read);
            (0..).inspect(move |_: &usize| _ = read.fetch_add(1, Ordering::SeqCst))
        };
        let mut map = executor.map(items, |_| Cost::new(1), |n| n);
        assert_eq!(read.load(Ordering::SeqCst), 0, "before the first call");
        for taken in 0..200 {
            assert_eq!(map.next().unwrap().unwrap(), taken);
            // Those in the window, the one that was taken from it, and one without a place.
            let ahead = read.load(Ordering::SeqCst) - taken;
            assert!(ahead <= workers + capacity + 1, "{ahead} of {workers} + {capacity}");
            if taken % 50 == 0 {
                until(|| executor.stats().running_jobs == 0);
                let ahead = read.load(Ordering::SeqCst) - taken;
                assert!(ahead <= workers + capacity + 1, "read on without being asked");
            }
        }
    }
}

#[test]
fn a_slow_consumer_bounds_the_bytes_that_are_ahead() {
    let _watch = watch!();
    let executor = builder(4, &budget(110)).waiting_bytes(10).build().unwrap();
    let read = Arc::new(AtomicUsize::new(0));
    let items = {
        let read = Arc::clone(&read);
        (0..).inspect(move |_: &usize| _ = read.fetch_add(1, Ordering::SeqCst))
    };
    // The lane has place for a thousand jobs, the lane and the budget for two and a half.
    let mut map = executor.map(items, |_| Cost::new(44), |n| n);
    for taken in 0..100 {
        assert_eq!(map.next().unwrap().unwrap(), taken);
        until(|| executor.stats().running_jobs == 0);
        assert!(read.load(Ordering::SeqCst) - taken <= 4);
    }
}

#[test]
fn an_endless_iterator_is_read_as_far_as_it_is_taken() {
    let _watch = watch!();
    let executor = executor(2, 10).0;
    let squares = executor.map(0_u64.., |_| Cost::new(1), |n| n * n).take(5);
    assert_eq!(squares.map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 4, 9, 16]);
    let live = Live::default();
    let items = {
        let live = live.clone();
        std::iter::repeat_with(move || live.one())
    };
    assert_eq!(executor.map(items, |_| Cost::new(1), drop).take(5).count(), 5);
    executor.drain().unwrap();
    assert_eq!(live.count(), 0, "a dropped map leaves its items to their jobs");
}

#[test]
fn an_error_takes_the_place_of_its_item_and_the_others_go_on() {
    let _watch = watch!();
    for capacity in [0, 1, 100] {
        let executor = builder(2, &budget(10)).capacity(capacity).build().unwrap();
        let cost = |n: &u64| Cost::new(if n % 5 == 1 { 11 } else { 1 });
        let work = |n: u64| {
            assert_ne!(n % 5, 2, "a bad item");
            n
        };
        let mut map = executor.map(0..50, cost, work);
        for n in 0..50 {
            match (n % 5, map.next().unwrap()) {
                (1, Err(MapError::Refused(Refused::NeverFits { .. }))) => {}
                (2, Err(MapError::Join(JoinError::Panicked(_)))) => {}
                (_, Ok(result)) => assert_eq!(result, n),
                (_, other) => panic!("{n}: {other:?}"),
            }
        }
        assert!(map.next().is_none());
        assert!(map.next().is_none());
    }
}

#[test]
fn a_map_whose_executor_closes_gives_what_was_accepted_and_ends_with_one_refusal() {
    let _watch = watch!();
    let executor = builder(2, &budget(10)).capacity(3).build().unwrap();
    let mut map = executor.map(0_u64.., |_| Cost::new(1), |n| n);
    assert_eq!(map.next().unwrap().unwrap(), 0);
    executor.close();
    let rest: Vec<_> = map.by_ref().collect();
    let (last, accepted) = rest.split_last().unwrap();
    assert!(matches!(last, Err(MapError::Refused(Refused::Closed))));
    for (n, result) in accepted.iter().enumerate() {
        assert_eq!(*result.as_ref().unwrap(), n as u64 + 1);
    }
    assert!(map.next().is_none());

    let executor = builder(1, &budget(10)).build().unwrap();
    let mut map = executor.map(0.., |_| Cost::new(1), |n: u64| n);
    drop(executor);
    assert!(matches!(map.next(), Some(Err(MapError::Refused(Refused::Closed)))));
    assert!(map.next().is_none());
}

#[test]
fn maps_on_a_lane_without_capacity_share_its_workers() {
    let _watch = watch!();
    let lane = LaneOptions::new("narrow").capacity(0);
    let executor = builder(2, &budget(10)).lane(lane).build().unwrap();
    std::thread::scope(|threads| {
        for _ in 0..3 {
            let lane = executor.lane("narrow").unwrap();
            threads.spawn(move || {
                let results = lane.map(0..200_u64, |_| Cost::new(7), |n| n);
                assert!(results.map(Result::unwrap).eq(0..200));
            });
        }
    });
}
