//! Bytes return exactly once, after what they stood for is gone and before anyone is told.

use std::panic::panic_any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admit::{Budget, Cost, Executor, Handle, JoinError, Permit, Refused};

use crate::kit::{Alive, Blocker, Live, OnDrop, budget, builder, until};
use crate::watchdog::watch;

struct Bench {
    executor: Executor,
    budget: Budget,
    /// Bytes beside those of the path: a second release would take some of these.
    beside: Permit,
    live: Live,
}

impl Bench {
    fn job(&self) -> Job {
        Job(self.live.one())
    }

    fn full(&self) -> Blocker {
        Blocker::on(self.executor.default_lane(), 60)
    }

    fn wait(&self) -> Handle<()> {
        let job = self.job();
        self.executor.submit(Cost::new(20).input(5), move || drop(job)).unwrap()
    }
}

struct Job(#[allow(dead_code, reason = "it counts")] Alive);

struct PanicsInDrop(#[allow(dead_code, reason = "it counts")] Alive);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

const COST: Cost = Cost::new(20).input(5);

type Path = (&'static str, fn(Bench) -> Permit);

/// Every way in which a job ends.
const PATHS: [Path; 14] = [
    ("return", |bench| {
        bench.wait().join().unwrap();
        bench.beside
    }),
    ("panic", |bench| {
        let job = bench.job();
        let bad = bench.executor.submit(COST, move || panic_any(job)).unwrap();
        assert!(matches!(bad.join(), Err(JoinError::Panicked(_))));
        bench.beside
    }),
    ("cancel waiting", |bench| {
        let blocker = bench.full();
        let waits = bench.wait();
        assert!(waits.cancel() && !waits.cancel());
        assert!(matches!(waits.join(), Err(JoinError::Cancelled)));
        blocker.release();
        bench.beside
    }),
    ("cancel running", |bench| {
        let blocker = bench.full();
        assert!(!blocker.handle.cancel());
        blocker.release();
        bench.beside
    }),
    ("close", |bench| {
        let (blocker, waits) = (bench.full(), bench.wait());
        bench.executor.close();
        blocker.release();
        waits.join().unwrap();
        bench.beside
    }),
    ("abort", |bench| {
        let (blocker, waits) = (bench.full(), bench.wait());
        assert_eq!(bench.executor.abort_waiting(), 1);
        assert_eq!(bench.executor.abort_waiting(), 0);
        assert!(matches!(waits.join(), Err(JoinError::Closed)));
        blocker.release();
        bench.beside
    }),
    ("drop of the executor", |bench| {
        let (blocker, waits) = (bench.full(), bench.wait());
        blocker.let_go();
        drop(bench.executor);
        assert!(waits.try_join().is_ok());
        bench.beside
    }),
    ("timeout", |bench| {
        let (blocker, first) = (bench.full(), bench.wait());
        let job = bench.job();
        let late = bench.executor.submit_timeout(COST, Duration::ZERO, move || drop(job));
        assert!(matches!(late.unwrap_err().reason, Refused::Full(_)));
        blocker.release();
        first.join().unwrap();
        bench.beside
    }),
    ("shrink", |bench| {
        let (blocker, waits) = (bench.full(), bench.wait());
        bench.budget.resize(29, 0);
        assert!(matches!(waits.join(), Err(JoinError::NeverFits { needed_bytes: 25, .. })));
        blocker.release();
        bench.budget.resize(100, 0);
        bench.beside
    }),
    ("panic in the drop of a captured value", |bench| {
        let bad = PanicsInDrop(bench.live.one());
        let job = bench.executor.submit(COST, move || drop(bad)).unwrap();
        assert!(matches!(job.join(), Err(JoinError::Panicked(_))));
        bench.beside
    }),
    ("panic in the drop of a captured value of a cancelled job", |bench| {
        let blocker = bench.full();
        let bad = PanicsInDrop(bench.live.one());
        let waits = bench.executor.submit(COST, move || drop(bad)).unwrap();
        assert!(waits.cancel());
        assert!(matches!(waits.join(), Err(JoinError::Cancelled)));
        blocker.release();
        bench.beside
    }),
    ("panic in the drop of the result", |bench| {
        let bad = PanicsInDrop(bench.live.one());
        let blocker = bench.full();
        drop(bench.executor.submit(COST, move || bad).unwrap());
        blocker.release();
        until(|| bench.executor.stats().counts.completed == 2);
        bench.beside
    }),
    ("panic in the drop of the payload", |bench| {
        let bad = PanicsInDrop(bench.live.one());
        let blocker = bench.full();
        drop(bench.executor.submit(COST, move || panic_any(bad)).unwrap());
        blocker.release();
        until(|| bench.executor.stats().counts.panicked == 1);
        bench.beside
    }),
    ("leaked handle", |bench| {
        let job = bench.job();
        std::mem::forget(bench.executor.submit(COST, move || drop(job)).unwrap());
        until(|| bench.executor.stats().counts.completed == 1);
        bench.beside
    }),
];

#[test]
fn i3_every_path_returns_exactly_its_bytes_once() {
    let _watch = watch!();
    for (path, take) in PATHS {
        let budget = budget(100);
        let beside = budget.acquire(25).unwrap();
        let live = Live::default();
        // One job and its input: a second submission that waits stands outside.
        let executor = builder(2, &budget).waiting_bytes(5).capacity(1).build().unwrap();
        let bench = Bench { executor, budget: budget.clone(), beside, live: live.clone() };
        let beside = take(bench);
        // The executor is gone, and with it whatever was still on its way.
        until(|| budget.ledger().waiting_limit_bytes == 0);
        assert_eq!(budget.ledger().held_bytes, 25, "{path}");
        assert_eq!(live.count(), 0, "{path}: a captured value is left");
        drop(beside);
        assert_eq!(budget.ledger().held_bytes, 0, "{path}");
        drop(budget.try_acquire(100).expect(path));
    }
}

#[test]
fn i4_a_closure_is_dropped_before_its_bytes_return() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = Arc::new(builder(1, &budget).waiting_bytes(20).build().unwrap());
    let (seen, drops) = crossbeam_channel::unbounded();
    let probe = |handle: &Arc<OnceLock<Handle<()>>>| {
        let (budget, executor) = (budget.clone(), Arc::downgrade(&executor));
        let (seen, handle) = (seen.clone(), Arc::clone(handle));
        OnDrop::new(move || {
            let stats = executor.upgrade().unwrap().stats();
            let finished = handle.get().is_some_and(Handle::is_finished);
            let held = budget.ledger().held_bytes;
            seen.send((held, stats.running_jobs, stats.waiting_input_bytes, finished)).unwrap();
        })
    };
    let run = Arc::default();
    let captured = probe(&run);
    let job = executor.submit(Cost::new(30).input(10), move || drop(captured)).unwrap();
    job.join().unwrap();
    assert_eq!(drops.recv().unwrap(), (40, 1, 0, false), "run");

    let captured = probe(&Arc::default());
    let job = executor.submit(Cost::new(30).input(10), move || {
        let _captured = captured;
        panic!("with a captured value");
    });
    assert!(job.unwrap().join().is_err());
    assert_eq!(drops.recv().unwrap(), (40, 1, 0, false), "panic");

    for abort in [false, true] {
        let blocker = Blocker::on(executor.default_lane(), 7);
        let handle = Arc::new(OnceLock::new());
        let captured = probe(&handle);
        let job = executor.submit(Cost::new(30).input(10), move || drop(captured)).unwrap();
        handle.set(job).unwrap();
        if abort {
            assert_eq!(executor.abort_waiting(), 1);
        } else {
            assert!(handle.get().unwrap().cancel());
        }
        assert_eq!(drops.recv().unwrap(), (7, 1, 10, false), "waiting, abort: {abort}");
        assert!(handle.get().unwrap().is_finished());
        assert_eq!(executor.stats().waiting_input_bytes, 0);
        blocker.release();
    }

    // A result that nobody takes is part of the job as well.
    let (budget_too, seen_too) = (budget.clone(), seen.clone());
    let blocker = Blocker::on(executor.default_lane(), 7);
    let result = OnDrop::new(move || {
        seen_too.send((budget_too.ledger().held_bytes, 0, 0, false)).unwrap();
    });
    drop(executor.submit(Cost::new(30).input(10), move || result).unwrap());
    blocker.release();
    assert_eq!(drops.recv().unwrap(), (40, 0, 0, false), "result");
}

#[test]
fn i4_bytes_return_before_the_handle_learns_of_the_end() {
    let _watch = watch!();
    let (executor, budget) = crate::kit::executor(2, 100);
    for round in 0..3000 {
        let job = executor.submit(Cost::new(100), move || assert_ne!(round % 3, 0)).unwrap();
        if round % 2 == 0 {
            while !job.is_finished() {
                std::hint::spin_loop();
            }
        } else {
            let _ = job.join();
        }
        assert_eq!(budget.ledger().held_bytes, 0);
    }
}

struct Evil;

impl Drop for Evil {
    fn drop(&mut self) {
        panic_any(Evil);
    }
}

#[test]
fn i3_a_payload_whose_drop_panics_with_its_like_does_not_hold_a_worker_for_ever() {
    let _watch = watch!();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().is::<Evil>() {
            report(panic);
        }
    }));
    let (executor, budget) = crate::kit::executor(1, 10);
    let blocker = Blocker::on(executor.default_lane(), 10);
    drop(executor.submit(Cost::new(10), || panic_any(Evil)).unwrap());
    blocker.release();
    until(|| budget.ledger().held_bytes == 0 && executor.stats().counts.panicked == 1);
}
