//! Producers and workers at full speed, with everything that can go wrong going wrong, for a
//! while: `ADMIT_STRESS_SECONDS`, or 10.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use admit::{Budget, Cost, Counts, Executor, Handle, JoinError, LaneOptions, Refused};
use parking_lot::RwLock;

const PRODUCERS: u64 = 8;
const WORKERS: usize = 8;
/// The budget is one of these two sizes, so that a job can tell by its ledger which one.
const LARGE: u64 = 1100;
const SMALL: u64 = 700;
const RESERVE: u64 = 50;
/// Of each of the two executors.
const WAITING: u64 = 100;

/// What producers, jobs and the resizer know of each other.
struct World {
    budget: Budget,
    executors: [Executor; 2],
    /// Declared bytes of the jobs that run and the permits that are held.
    running: Arc<AtomicU64>,
    /// Captured values that are not dropped yet.
    live: Arc<AtomicUsize>,
    /// Held to read while a pair of numbers is compared, and to write during a resize.
    size: Arc<RwLock<()>>,
    over: Arc<AtomicBool>,
}

struct Captured(Arc<AtomicUsize>);

impl Captured {
    fn new(live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Captured(Arc::clone(live))
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        assert_ne!(before, 0, "a captured value was dropped twice");
    }
}

/// What one producer saw.
#[derive(Debug, Default)]
struct Seen {
    offered: u64,
    accepted: u64,
    returned: u64,
    values: u64,
    panicked: u64,
    cancelled: u64,
    aborted: u64,
    evicted: u64,
    detached: u64,
}

impl Seen {
    fn resolve(&mut self, outcome: Result<u64, JoinError>) {
        match outcome {
            Ok(_) => self.values += 1,
            Err(JoinError::Panicked(_)) => self.panicked += 1,
            Err(JoinError::Cancelled) => self.cancelled += 1,
            Err(JoinError::Closed) => self.aborted += 1,
            Err(JoinError::NeverFits { .. }) => self.evicted += 1,
            Err(other) => panic!("{other}"),
        }
    }

    fn add(&mut self, other: &Seen) {
        self.offered += other.offered;
        self.accepted += other.accepted;
        self.returned += other.returned;
        self.values += other.values;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.aborted += other.aborted;
        self.evicted += other.evicted;
        self.detached += other.detached;
    }
}

/// Counts declared bytes for as long as it lives, through a panic too.
struct Running(Arc<AtomicU64>, u64);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::SeqCst);
    }
}

impl World {
    fn hold(&self, bytes: u64) -> impl FnOnce() -> Running + Send + use<> {
        let (running, budget) = (Arc::clone(&self.running), self.budget.clone());
        let (size, over) = (Arc::clone(&self.size), Arc::clone(&self.over));
        move || {
            let most = LARGE - RESERVE - 2 * WAITING;
            let sum = running.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let guard = Running(running, bytes);
            // I1: whatever the size is now, no more was ever admitted than the large one admits,
            // and the ledger knows of every byte.
            let _size = size.read();
            let ledger = budget.ledger();
            let admissible = ledger.admissible_bytes();
            let sizes = [LARGE, SMALL].map(|capacity| capacity - RESERVE - 2 * WAITING);
            let wrong = sum > most
                || ledger.held_bytes > most
                || ledger.peak_held_bytes > most
                || ledger.held_bytes < bytes
                || !sizes.contains(&admissible);
            over.fetch_or(wrong, Ordering::SeqCst);
            guard
        }
    }

    fn work(&self, rng: &mut fastrand::Rng, cost: Cost) -> impl FnOnce() -> u64 + Send + use<> {
        let captured = Captured::new(&self.live);
        let hold = self.hold(cost.total_bytes().unwrap_or(0));
        let (panics, spins) = (rng.u8(..) < 20, rng.u32(0..400));
        move || {
            let captured = captured;
            let _running = hold();
            (0..spins).for_each(|_| std::hint::spin_loop());
            if panics {
                // The payload is a captured value as well.
                std::panic::panic_any(captured);
            }
            u64::from(spins)
        }
    }

    fn produce(&self, mut rng: fastrand::Rng, until: Instant) -> Seen {
        let mut seen = Seen::default();
        let mut handles: Vec<Handle<u64>> = Vec::new();
        while Instant::now() < until {
            let executor = &self.executors[rng.usize(0..2)];
            let lane = executor.lane(["default", "narrow"][rng.usize(0..2)]).unwrap();
            let cost = match rng.u8(0..20) {
                0 => Cost::new(0),
                1 => Cost::new(rng.u64(440..860)),
                2 => Cost::new(u64::MAX).input(2),
                3 => Cost::new(1).input(rng.u64(0..200)),
                _ => Cost::new(rng.u64(0..200)).input(rng.u64(0..20)),
            };
            let timeout = Duration::from_micros(rng.u64(0..300));
            match rng.u8(0..40) {
                0..30 => {
                    let work = self.work(&mut rng, cost);
                    seen.offered += 1;
                    let submitted = match rng.u8(0..4) {
                        0 | 1 => lane.submit(cost, work),
                        2 => lane.try_submit(cost, work),
                        _ => lane.submit_timeout(cost, timeout, work),
                    };
                    match submitted {
                        Ok(handle) => {
                            seen.accepted += 1;
                            handles.push(handle);
                        }
                        Err(refused) => {
                            assert!(matches!(
                                refused.reason,
                                Refused::Full(_) | Refused::NeverFits { .. }
                            ));
                            seen.returned += 1;
                        }
                    }
                }
                30..33 if !handles.is_empty() => {
                    let handle = &handles[rng.usize(0..handles.len())];
                    if handle.cancel() {
                        assert!(handle.is_finished());
                    }
                }
                33 if !handles.is_empty() => {
                    drop(handles.swap_remove(rng.usize(0..handles.len())));
                    seen.detached += 1;
                }
                34 => drop(executor.abort_waiting()),
                35 => {
                    let permit = self.budget.acquire_timeout(rng.u64(0..900), timeout);
                    if let Ok(permit) = permit {
                        drop(self.hold(permit.bytes())());
                        drop(permit);
                    }
                }
                36 => {
                    if let Ok(mut permit) = self.budget.acquire(rng.u64(0..300)) {
                        let part = permit.split(permit.bytes() / 2).unwrap();
                        drop(self.hold(permit.bytes() + part.bytes())());
                        permit.shrink_to(1);
                    }
                }
                37 => assert!(executor.stats().running_jobs <= WORKERS),
                _ => {}
            }
            if handles.len() >= 64 {
                let late = handles.drain(..).filter_map(|handle| {
                    let joined = match rng.u8(0..3) {
                        0 => Ok(handle.join()),
                        1 => handle.join_timeout(timeout),
                        _ => handle.try_join(),
                    };
                    joined.map(|outcome| seen.resolve(outcome)).err()
                });
                let late: Vec<_> = late.collect();
                late.into_iter().for_each(|handle| seen.resolve(handle.join()));
            }
        }
        handles.into_iter().for_each(|handle| seen.resolve(handle.join()));
        seen
    }

    fn resize(&self, until: Instant) {
        let mut sizes = [SMALL, LARGE].into_iter().cycle();
        while Instant::now() < until {
            {
                let _alone = self.size.write();
                self.budget.resize(sizes.next().expect("a cycle"), RESERVE);
            }
            (0..200).for_each(|_| thread::yield_now());
        }
        self.budget.resize(LARGE, RESERVE);
    }
}

fn build(budget: &Budget) -> Executor {
    Executor::builder()
        .workers(WORKERS)
        .budget(budget.clone())
        .waiting_bytes(WAITING)
        .capacity(32)
        .lane(LaneOptions::new("narrow").capacity(3).input_bytes(30))
        .build()
        .unwrap()
}

fn ended(counts: &Counts) -> u64 {
    counts.completed + counts.panicked + counts.cancelled + counts.aborted + counts.evicted
}

#[test]
fn nothing_is_lost_or_exceeded_under_stress() {
    let seconds = std::env::var("ADMIT_STRESS_SECONDS").map_or(10, |text| text.parse().unwrap());
    let time = Duration::from_secs(seconds);
    let (_test_ends, watch) = channel::<()>();
    thread::spawn(move || {
        if watch.recv_timeout(time + Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln!`, whose text the harness keeps to itself until the test has ended.
            let test = "nothing_is_lost_or_exceeded_under_stress";
            let _ = writeln!(std::io::stderr(), "watchdog: {test} hangs");
            std::process::abort();
        }
    });
    // Thousands of panics are on purpose, and their messages of no interest.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().is::<Captured>() {
            report(panic);
        }
    }));

    let budget = Budget::new(LARGE, RESERVE).unwrap();
    let world = World {
        executors: [build(&budget), build(&budget)],
        budget: budget.clone(),
        running: Arc::default(),
        live: Arc::default(),
        size: Arc::default(),
        over: Arc::default(),
    };
    let start = Barrier::new(PRODUCERS as usize + 1);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|n| {
                let (world, start) = (&world, &start);
                scope.spawn(move || {
                    start.wait();
                    world.produce(fastrand::Rng::with_seed(n), Instant::now() + time)
                })
            })
            .collect();
        start.wait();
        world.resize(Instant::now() + time);
        for producer in producers {
            seen.add(&producer.join().expect("a producer's assertions hold"));
        }
    });

    for executor in &world.executors {
        executor.drain().unwrap();
    }
    assert!(!world.over.load(Ordering::SeqCst), "I1: more was admitted than admissible");
    assert_eq!(seen.offered, seen.accepted + seen.returned);
    let resolved = seen.values + seen.panicked + seen.cancelled + seen.aborted + seen.evicted;
    assert_eq!(seen.accepted, resolved + seen.detached, "{seen:?}");

    let counts = world.executors.each_ref().map(|executor| executor.stats().counts);
    assert_eq!(counts.iter().map(ended).sum::<u64>(), seen.accepted, "{counts:?}");
    // Nobody knows what became of a job whose handle was dropped, except the executor.
    for (name, counted, found) in [
        ("completed", counts.iter().map(|it| it.completed).sum::<u64>(), seen.values),
        ("panicked", counts.iter().map(|it| it.panicked).sum(), seen.panicked),
        ("cancelled", counts.iter().map(|it| it.cancelled).sum(), seen.cancelled),
        ("aborted", counts.iter().map(|it| it.aborted).sum(), seen.aborted),
        ("evicted", counts.iter().map(|it| it.evicted).sum(), seen.evicted),
    ] {
        let possible = found..=found + seen.detached;
        assert!(possible.contains(&counted), "{counted} {name}, not in {possible:?}");
    }
    let refused = |counts: &Counts| counts.refused_full + counts.refused_never_fits;
    assert_eq!(counts.iter().map(refused).sum::<u64>(), seen.returned, "{counts:?}");
    for (name, minimum, found) in [
        ("values", 1000, seen.values),
        ("panics", 50, seen.panicked),
        ("cancels", 10, seen.cancelled),
        ("aborts", 10, seen.aborted),
        ("evictions", 1, seen.evicted),
        ("refusals", 100, seen.returned),
    ] {
        assert!(found >= minimum || seconds < 10, "only {found} {name}: this was no stress");
    }
    for executor in &world.executors {
        let stats = executor.stats();
        assert_eq!((stats.waiting_jobs, stats.waiting_input_bytes), (0, 0));
        assert_eq!((stats.running_jobs, stats.running_bytes, stats.workers), (0, 0, 0));
        assert!(stats.lanes.iter().all(|lane| lane.blocked_submits == 0));
    }
    let World { live, running, .. } = world;
    let ledger = budget.ledger();
    assert_eq!((ledger.held_bytes, ledger.waiting_limit_bytes), (0, 0));
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert_eq!(live.load(Ordering::SeqCst), 0, "captured values are left");
    println!("{} submissions: {seen:?}", seen.offered);
}
