//! One budget for executors and direct permits, and its size while they use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use admit::{AcquireError, Budget, Cost};
use proptest::prelude::*;

use crate::kit::{Blocker, aside, budget, builder, executor, until};
use crate::watchdog::watch;

#[test]
fn two_executors_and_permits_together_hold_no_more_than_the_budget() {
    let _watch = watch!();
    let budget = budget(100);
    let executors = [2, 3].map(|workers| builder(workers, &budget).build().unwrap());
    let together = Arc::new(AtomicU64::new(0));
    let hold = |bytes: u64| {
        let sum = together.fetch_add(bytes, Ordering::SeqCst) + bytes;
        assert!(sum <= 100, "{sum} bytes are held");
        std::thread::yield_now();
        together.fetch_sub(bytes, Ordering::SeqCst);
    };
    std::thread::scope(|threads| {
        for (n, executor) in executors.iter().enumerate() {
            let (hold, budget) = (&hold, &budget);
            threads.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(n as u64);
                executor.scope(|scope| {
                    for _ in 0..500 {
                        let bytes = rng.u64(0..80);
                        drop(scope.submit(Cost::new(bytes), move || hold(bytes)).unwrap());
                    }
                });
                assert_eq!(executor.stats().counts.panicked, 0);
            });
            threads.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(10 + n as u64);
                for _ in 0..300 {
                    let mut permit = budget.acquire(rng.u64(0..=100)).unwrap();
                    hold(permit.bytes());
                    let half = permit.bytes() / 2;
                    let rest = permit.split(half).unwrap();
                    drop(permit);
                    hold(rest.bytes());
                }
            });
        }
    });
    assert_eq!(budget.ledger().held_bytes, 0);
    assert!(budget.ledger().peak_held_bytes <= 100);
}

#[test]
fn a_budget_that_is_resized_under_load_admits_by_its_size_of_the_moment() {
    let _watch = watch!();
    let (executor, budget) = executor(4, 100);
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|threads| {
        let resizer = threads.spawn(|| {
            for round in 0..300 {
                budget.resize(if round % 2 == 0 { 40 } else { 100 }, 0);
                std::thread::yield_now();
            }
            budget.resize(40, 0);
        });
        executor.scope(|scope| {
            for n in 0..2000 {
                let (budget, over) = (&budget, &over);
                let work = move || {
                    over.fetch_or(budget.ledger().held_bytes > 100, Ordering::SeqCst);
                };
                drop(scope.submit(Cost::new(n % 41), work).unwrap());
            }
        });
        resizer.join().unwrap();
    });
    assert!(!over.load(Ordering::SeqCst));
    assert_eq!(executor.stats().counts.completed, 2000, "what fits the small size never leaves");
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn a_grown_budget_admits_who_waits_and_a_shrunk_one_waits_for_what_is_held() {
    let _watch = watch!();
    let (executor, budget) = executor(4, 10);
    let blocker = Blocker::on(executor.default_lane(), 10);
    let waits = executor.submit(Cost::new(10), || ()).unwrap();
    budget.resize(20, 0);
    waits.join().unwrap();

    budget.resize(5, 0);
    let ledger = budget.ledger();
    assert_eq!((ledger.held_bytes, ledger.free_bytes()), (10, 0));
    let waits = executor.submit(Cost::new(1), || ()).unwrap();
    let never = budget.acquire(6);
    assert!(matches!(never, Err(AcquireError::NeverFits { admissible_bytes: 5, .. })));
    assert!(!waits.is_finished());
    blocker.release();
    waits.join().unwrap();
}

#[test]
fn an_acquirer_that_waits_is_refused_when_the_budget_shrinks_below_its_need() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 10);
    let held = budget.acquire(5).unwrap();
    let [large, small] = [8, 6].map(|bytes| {
        let budget = budget.clone();
        let waits = aside(move || budget.acquire(bytes));
        until(|| executor.stats().blocked_acquires > 0);
        waits
    });
    until(|| executor.stats().blocked_acquires == 2);
    budget.resize(7, 0);
    assert!(matches!(
        large.recv().unwrap(),
        Err(AcquireError::NeverFits { needed_bytes: 8, admissible_bytes: 7 })
    ));
    assert!(small.try_recv().is_err());
    drop(held);
    assert_eq!(small.recv().unwrap().unwrap().bytes(), 6);
}

#[derive(Clone, Debug)]
enum Step {
    Acquire(u64),
    Split(usize, u64),
    Shrink(usize, u64),
    Drop(usize),
    Resize(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..60_u64).prop_map(Step::Acquire),
        (0..8_usize, 0..60_u64).prop_map(|(at, bytes)| Step::Split(at, bytes)),
        (0..8_usize, 0..60_u64).prop_map(|(at, bytes)| Step::Shrink(at, bytes)),
        (0..8_usize).prop_map(Step::Drop),
        (0..120_u64, 0..40_u64).prop_map(|(capacity, reserve)| Step::Resize(capacity, reserve)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn permits_hold_what_they_say_through_every_split_shrink_and_resize(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let budget = Budget::new(100, 0).unwrap();
        let mut admissible = 100_u64;
        let mut permits: Vec<admit::Permit> = Vec::new();
        for step in steps {
            let held: u64 = permits.iter().map(|permit| permit.bytes()).sum();
            match step {
                Step::Acquire(bytes) => match budget.try_acquire(bytes) {
                    Ok(permit) => {
                        prop_assert!(bytes == 0 || held + bytes <= admissible);
                        prop_assert_eq!(permit.bytes(), bytes);
                        permits.push(permit);
                    }
                    Err(AcquireError::NeverFits { .. }) => prop_assert!(bytes > admissible),
                    Err(AcquireError::NotNow { free_bytes, .. }) => {
                        prop_assert!(held + bytes > admissible && bytes <= admissible);
                        prop_assert_eq!(free_bytes, admissible.saturating_sub(held));
                    }
                    Err(other) => prop_assert!(false, "{}", other),
                },
                Step::Split(at, bytes) if at < permits.len() => {
                    let before = permits[at].bytes();
                    match permits[at].split(bytes) {
                        Some(part) => {
                            prop_assert_eq!(part.bytes(), bytes);
                            prop_assert_eq!(permits[at].bytes() + bytes, before);
                            permits.push(part);
                        }
                        None => prop_assert!(bytes > before && permits[at].bytes() == before),
                    }
                }
                Step::Shrink(at, bytes) if at < permits.len() => {
                    let before = permits[at].bytes();
                    permits[at].shrink_to(bytes);
                    prop_assert_eq!(permits[at].bytes(), before.min(bytes));
                }
                Step::Drop(at) if at < permits.len() => drop(permits.swap_remove(at)),
                Step::Resize(capacity, reserve) => {
                    budget.resize(capacity, reserve);
                    admissible = capacity.saturating_sub(reserve);
                }
                _ => {}
            }
            let held: u64 = permits.iter().map(|permit| permit.bytes()).sum();
            prop_assert_eq!(budget.ledger().held_bytes, held);
            prop_assert_eq!(budget.ledger().admissible_bytes(), admissible);
        }
        drop(permits);
        prop_assert_eq!(budget.ledger().held_bytes, 0);
    }
}
