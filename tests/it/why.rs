//! A waiting job says what it lacks, and who has it.

use std::time::Duration;

use admit::{Context, Cost, Executor, HolderKind, LaneOptions, Resource, Why};

use crate::kit::{Blocker, budget, builder, executor, until};
use crate::watchdog::watch;

fn why(executor: &Executor, lane: &str) -> Why {
    let stats = executor.stats();
    let lane = stats.lanes.iter().find(|its| &*its.name == lane).expect("it was built");
    lane.why.clone().expect("a job waits")
}

#[test]
fn why_names_the_resource_that_the_job_lacks() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(3, &budget)
        .lane(LaneOptions::new("narrow").most_workers(1))
        .lane(LaneOptions::new("small").most_bytes(20))
        .lane(LaneOptions::new("sure").guaranteed_bytes(30).guaranteed_workers(1))
        .build()
        .unwrap();
    let lane = |name: &str| executor.lane(name).unwrap();
    let narrow = Blocker::on(&lane("narrow"), 0);
    let second = lane("narrow").submit(Cost::new(1), || ()).unwrap();
    assert_eq!(why(&executor, "narrow").resource, Resource::LaneWorkers { most: 1 });
    let small = Blocker::on(&lane("small"), 15);
    let above = lane("small").submit(Cost::new(6), || ()).unwrap();
    let lacks = Resource::LaneBytes { held_bytes: 15, most_bytes: 20 };
    assert_eq!(why(&executor, "small").resource, lacks);
    // One worker of three is left, and it is the third lane's.
    let plain = executor.submit(Cost::new(1), || ()).unwrap();
    let its = why(&executor, "default");
    assert_eq!((its.resource, its.needed_bytes), (Resource::Worker, 1));
    assert_eq!(
        its.to_string(),
        "the job at the head needs 1 byte; no worker is free for it, 2 jobs run"
    );
    narrow.release();
    second.join().unwrap();
    plain.join().unwrap();
    // 85 bytes are free, of which 30 are the third lane's.
    let large = executor.submit(Cost::new(60), || ()).unwrap();
    let its = why(&executor, "default");
    assert_eq!((its.resource, its.needed_bytes), (Resource::Bytes, 60));
    assert_eq!((its.free_bytes, its.promised_bytes), (85, 30));
    let behind = lane("narrow").submit(Cost::new(1), || ()).unwrap();
    let its = why(&executor, "narrow");
    assert_eq!(its.resource, Resource::Turn);
    assert_eq!(
        its.to_string(),
        "the job at the head needs 1 byte; somebody who waits for bytes is before it"
    );
    small.release();
    for handle in [above, large, behind] {
        handle.join().unwrap();
    }
}

#[test]
fn why_names_the_largest_holders_and_their_age() {
    let _watch = watch!();
    let (one, budget) = executor(2, 100);
    let other = builder(2, &budget).lane(LaneOptions::new("heavy")).build().unwrap();
    let keep = || Context::current().unwrap().keep(20).unwrap();
    let kept = one.submit(Cost::new(20), keep).unwrap().join().unwrap();
    let acquired = budget.acquire(25).unwrap();
    let running = Blocker::on(&other.lane("heavy").unwrap(), 30);
    let small = Blocker::on(one.default_lane(), 5);
    let waits = one.submit(Cost::new(50), || ()).unwrap();
    let largest = || why(&one, "default").largest;
    let names = |holder: &admit::Holder| {
        (holder.kind, holder.lane.as_deref().map(str::to_owned), holder.bytes)
    };
    assert_eq!(
        largest().iter().map(names).collect::<Vec<_>>(),
        [
            (HolderKind::Job, Some("heavy".into()), 30),
            (HolderKind::Acquired, None, 25),
            (HolderKind::Kept, Some("default".into()), 20),
        ]
    );
    // They grow older.
    until(|| largest().iter().all(|holder| holder.age >= Duration::from_millis(20)));
    // The parts of a permit are as old as it is.
    let mut acquired = acquired;
    let part = acquired.split(12).unwrap();
    until(|| largest().len() == 3);
    let its = largest();
    let ages: Vec<_> = its.iter().filter(|its| its.kind != HolderKind::Job).collect();
    assert!(ages.iter().all(|its| its.age >= Duration::from_millis(20)), "{its:?}");
    drop((part, acquired, kept));
    running.release();
    small.release();
    waits.join().unwrap();
}

#[test]
fn the_oldest_wait_is_that_of_the_oldest_also_where_the_newest_is_next() {
    let _watch = watch!();
    let budget = budget(100);
    let newest = LaneOptions::new("newest").most_workers(1).newest_first_after(Duration::ZERO);
    let executor = builder(2, &budget).lane(newest).build().unwrap();
    let lane = executor.lane("newest").unwrap();
    let blocker = Blocker::on(&lane, 0);
    let permit = budget.acquire(50).unwrap();
    let old = lane.submit(Cost::new(80), || ()).unwrap();
    let long = Duration::from_millis(30);
    until(|| executor.stats().oldest_wait.is_some_and(|wait| wait >= long));
    let new = lane.submit(Cost::new(90), || ()).unwrap();
    blocker.release();
    assert_eq!(why(&executor, "newest").needed_bytes, 90);
    assert!(executor.stats().oldest_wait.is_some_and(|wait| wait >= long));
    drop(permit);
    old.join().unwrap();
    new.join().unwrap();
}
