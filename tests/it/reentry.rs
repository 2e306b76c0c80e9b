//! No lock is held while code of the caller's runs: it may do everything from everywhere.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use admit::{Budget, Cost, Executor, Handle, LaneOptions};

use crate::kit::{Blocker, OnDrop, aside, budget, builder, until};
use crate::watchdog::watch;

/// Does everything that takes the gate's lock, and counts how often it did.
#[derive(Clone)]
struct Poke {
    executor: Weak<Executor>,
    budget: Budget,
    own: Arc<OnceLock<Handle<()>>>,
    count: Arc<AtomicUsize>,
}

impl Poke {
    fn new(executor: &Arc<Executor>, budget: &Budget) -> Poke {
        let (executor, budget) = (Arc::downgrade(executor), budget.clone());
        Poke { executor, budget, own: Arc::default(), count: Arc::default() }
    }

    /// Another one, for a job of its own.
    fn again(&self) -> Poke {
        Poke { own: Arc::default(), ..self.clone() }
    }

    fn poke(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let Some(executor) = self.executor.upgrade() else { return };
        let stats = executor.stats();
        assert!(stats.running_jobs <= stats.workers);
        assert!(format!("{executor:?} {:?}", self.budget).contains("default"));
        // The handle of the very job whose code this is.
        if let Some(own) = self.own.get() {
            own.cancel();
            assert!(format!("{own:?}").contains("is_finished"));
        }
        for name in ["default", "narrow", "none"] {
            let Some(lane) = executor.lane(name) else { continue };
            if let Ok(handle) = lane.try_submit(Cost::new(1), || ()) {
                handle.cancel();
            }
            drop(lane.submit_timeout(Cost::new(1), Duration::ZERO, || ()));
            drop(lane.try_submit(Cost::new(u64::MAX), || ()));
        }
        if let Ok(mut permit) = self.budget.try_acquire(2) {
            drop(permit.split(1));
            permit.shrink_to(0);
        }
        drop(self.budget.acquire_timeout(1, Duration::ZERO));
        self.budget.resize(100, 0);
        let borrowed = 1;
        executor.scope(|scope| drop(scope.try_submit(Cost::new(0), || borrowed + 1)));
        drop(builder(1, &self.budget).build().unwrap());
    }

    fn in_drop(&self) -> OnDrop<impl FnOnce() + use<>> {
        let poke = self.clone();
        OnDrop::new(move || poke.poke())
    }

    fn pokes(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn arena() -> (Arc<Executor>, Budget, Poke) {
    let budget = budget(100);
    let lane = LaneOptions::new("narrow").capacity(0);
    let executor = Arc::new(builder(2, &budget).lane(lane).build().unwrap());
    let poke = Poke::new(&executor, &budget);
    (executor, budget, poke)
}

#[test]
fn i7_no_lock_is_held_while_a_job_runs_and_its_parts_are_dropped() {
    let _watch = watch!();
    let (executor, _, poke) = arena();
    // The closure, what it captured, and the result, with a handle and without.
    for detached in [false, true] {
        let before = poke.pokes();
        let job = poke.again();
        let (inside, captured, result) = (job.clone(), job.in_drop(), job.in_drop());
        let handle = executor.submit(Cost::new(10), move || {
            inside.poke();
            drop(captured);
            result
        });
        let handle = handle.unwrap();
        if detached {
            drop(handle);
        } else {
            drop(handle.join().unwrap());
        }
        until(|| poke.pokes() == before + 3);
    }
    // A payload, and what was captured when it was thrown.
    let before = poke.pokes();
    let (captured, payload) = (poke.in_drop(), poke.in_drop());
    let handle = executor.submit(Cost::new(10), move || {
        let _captured = captured;
        let payload: Box<dyn FnOnce() + Send> = Box::new(move || drop(payload));
        panic_any(OnDrop::new(payload))
    });
    drop(handle.unwrap());
    until(|| poke.pokes() == before + 2);
}

#[test]
fn i7_no_lock_is_held_while_closures_that_never_ran_are_dropped() {
    let _watch = watch!();
    let (executor, budget, poke) = arena();
    let ways: [fn(&Executor, &Budget, &Handle<()>); 4] = [
        |_, _, handle| assert!(handle.cancel()),
        |executor, _, _| assert!(executor.abort_waiting() > 0),
        |_, budget, _| budget.resize(50, 0),
        |_, budget, _| {
            // Shrinks what is admissible.
            drop(builder(1, budget).waiting_bytes(50).build().unwrap());
        },
    ];
    for way in ways {
        let before = poke.pokes();
        let blocker = Blocker::on(executor.default_lane(), 20);
        let job = poke.again();
        let captured = job.in_drop();
        let handle = executor.submit(Cost::new(90), move || drop(captured)).unwrap();
        assert!(job.own.set(handle).is_ok());
        way(&executor, &budget, job.own.get().unwrap());
        until(|| poke.pokes() == before + 1);
        budget.resize(100, 0);
        blocker.release();
        until(|| executor.stats().running_jobs == 0 && executor.stats().waiting_jobs == 0);
    }
}

#[test]
fn i7_no_lock_is_held_while_a_map_reads_and_prices_its_items() {
    let _watch = watch!();
    let (executor, _, poke) = arena();
    let (in_items, in_cost, in_work) = (poke.clone(), poke.clone(), poke.clone());
    let items = (0..20).inspect(move |_| in_items.poke());
    let cost = move |item: &u64| {
        in_cost.poke();
        Cost::new(*item)
    };
    let work = move |item: u64| {
        in_work.poke();
        item
    };
    let results: Vec<u64> = executor.map(items, cost, work).map(Result::unwrap).collect();
    assert_eq!(results, (0..20).collect::<Vec<_>>());
    assert_eq!(poke.pokes(), 60);
}

#[test]
fn i7_a_thread_that_is_woken_may_do_everything_at_once() {
    let _watch = watch!();
    let (executor, budget, poke) = arena();
    for _ in 0..50 {
        let blocker = Blocker::on(executor.default_lane(), 100);
        let acquirer = {
            let (budget, poke) = (budget.clone(), poke.clone());
            aside(move || {
                // Not while it is held: a job behind one that needs these bytes waits for them.
                drop(budget.acquire(60).unwrap());
                poke.poke();
            })
        };
        let submitter = {
            let (lane, poke) = (executor.lane("narrow").unwrap(), poke.clone());
            aside(move || {
                let handle = lane.submit(Cost::new(50), || ()).unwrap();
                poke.poke();
                handle.join().unwrap();
                poke.poke();
            })
        };
        until(|| {
            let stats = executor.stats();
            stats.blocked_acquires == 1 && stats.lanes[1].blocked_submits == 1
        });
        blocker.release();
        acquirer.recv().unwrap();
        submitter.recv().unwrap();
    }
    until(|| budget.ledger().held_bytes == 0);
}
