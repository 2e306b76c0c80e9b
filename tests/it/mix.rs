//! Everything at once, in random order, from many threads: nothing hangs and nothing is left.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use admit::{Budget, BuildError, Cost, Executor, Handle, LaneOptions};
use parking_lot::RwLock;

use crate::kit::{Live, builder, threads_named, until};
use crate::watchdog::watch;

const LARGE: u64 = 100;
const SMALL: u64 = 70;
const NAME: &str = "i9-mix";

struct World {
    budget: Budget,
    executors: [RwLock<Arc<Executor>>; 2],
    live: Live,
}

/// Old executors keep their limit of waiting bytes until their workers have left, so there may
/// be no room for another one yet.
fn build(budget: &Budget) -> Arc<Executor> {
    loop {
        let narrow = LaneOptions::new("narrow").capacity(0);
        let other = LaneOptions::new("other").capacity(2).input_bytes(6);
        let builder = builder(2, budget).capacity(4).waiting_bytes(10).lane(narrow).lane(other);
        match builder.thread_name(NAME).build() {
            Ok(executor) => return Arc::new(executor),
            Err(BuildError::WaitingAboveBudget { .. }) => thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// What a job does: most of all, call its own executor back, and now and then be the last to
/// know it.
fn work(
    rng: &mut fastrand::Rng,
    own: Weak<Executor>,
    live: &Live,
) -> impl FnOnce() -> u8 + Send + use<> {
    let (act, alive) = (rng.u8(0..12), live.one());
    move || {
        let _alive = alive;
        match act {
            0 => panic!("one of many"),
            1 => drop(own.upgrade().map(|own| own.try_submit(Cost::new(1), || ()).map(drop))),
            2 => drop(own.upgrade().map(|own| own.submit(Cost::new(30), || ()).map(Handle::join))),
            3 => drop(own.upgrade().map(|own| own.abort_waiting())),
            4 => {
                // Others drop the executor meanwhile, and leave the last reference here.
                let own = own.upgrade();
                (0..20).for_each(|_| thread::yield_now());
                drop(own);
            }
            5 => drop(own.upgrade().map(|own| {
                own.submit_timeout(Cost::new(9).input(1), Duration::from_micros(50), || ())
                    .map(|handle| handle.join_timeout(Duration::from_micros(50)).map(drop))
                    .map(drop)
            })),
            _ => {}
        }
        act
    }
}

impl World {
    fn churn(&self, mut rng: fastrand::Rng, rounds: usize) {
        let mut handles: Vec<Handle<u8>> = Vec::new();
        for _ in 0..rounds {
            let which = rng.usize(0..2);
            let executor = Arc::clone(&self.executors[which].read());
            let lane = executor.lane(["default", "narrow", "other"][rng.usize(0..3)]).unwrap();
            let cost = Cost::new(rng.u64(0..70)).input(rng.u64(0..8));
            let work = work(&mut rng, Arc::downgrade(&executor), &self.live);
            let timeout = Duration::from_micros(rng.u64(0..200));
            match rng.u8(0..24) {
                0..5 => handles.extend(lane.submit(cost, work)),
                5..8 => handles.extend(lane.try_submit(cost, work)),
                8..10 => handles.extend(lane.submit_timeout(cost, timeout, work)),
                10 => drop(handles.pop().map(Handle::join)),
                11 => {
                    let joined = handles.pop().map(|handle| handle.join_timeout(timeout));
                    handles.extend(joined.and_then(Result::err));
                }
                12 => handles.iter().for_each(|handle| _ = handle.cancel()),
                13 => handles.clear(),
                // A leaked handle leaks its executor's shared part, not the workers.
                14 => drop(handles.pop().map(std::mem::forget)),
                15 => drop(self.budget.acquire(rng.u64(0..80))),
                16 => drop(self.budget.acquire_timeout(rng.u64(0..80), timeout)),
                17 => self.budget.resize([SMALL, LARGE][rng.usize(0..2)], 0),
                18 => {
                    let items = lane.map(0..8, |_| Cost::new(20), |n: u8| n);
                    assert!(items.take(6).count() <= 6);
                }
                19 => {
                    let (text, live) = (String::from("borrowed"), &self.live);
                    let length: usize = executor.scope(|scope| {
                        let borrow = || (live.one(), text.len()).1;
                        let sum = |handle: admit::ScopedHandle<'_, usize>| handle.join().ok();
                        let jobs: Vec<_> = (0..3)
                            .filter_map(|_| scope.submit(Cost::new(5), borrow).ok())
                            .collect();
                        drop(scope.try_submit(cost, borrow));
                        jobs.into_iter().filter_map(sum).sum()
                    });
                    assert_eq!(length % text.len(), 0);
                }
                20 => drop(executor.abort_waiting()),
                act => {
                    // Closed first, or its workers would never leave room for the next.
                    executor.close();
                    let next = build(&self.budget);
                    let last = std::mem::replace(&mut *self.executors[which].write(), next);
                    match act {
                        21 => drop(executor.drain_timeout(timeout)),
                        22 => executor.drain().unwrap(),
                        _ => {}
                    }
                    drop(last);
                }
            }
        }
        handles.into_iter().for_each(|handle| drop(handle.join()));
    }
}

#[test]
fn i9_no_mix_of_calls_from_many_threads_hangs_or_leaves_anything() {
    let _watch = watch!();
    for seed in 0..4 {
        let budget = Budget::new(LARGE, 0).unwrap();
        let executors = [build(&budget), build(&budget)].map(RwLock::new);
        let world = World { budget: budget.clone(), executors, live: Live::default() };
        thread::scope(|scope| {
            for n in 0..6 {
                let world = &world;
                let rng = fastrand::Rng::with_seed(seed * 100 + n);
                scope.spawn(move || world.churn(rng, 250));
            }
        });
        let live = world.live.clone();
        drop(world);
        until(|| threads_named(NAME) == 0);
        until(|| budget.ledger().waiting_limit_bytes == 0);
        assert_eq!(budget.ledger().held_bytes, 0);
        assert_eq!(live.count(), 0, "a captured value is left");
        drop(budget.try_acquire(SMALL).unwrap());
    }
}
