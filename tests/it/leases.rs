//! Bytes that outlive their job, and bytes that a job comes to want.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use admit::{
    AcquireError, Context, Cost, Handle, JoinError, Lane, LaneOptions, Lease, Overtaking, Permit,
    Refused,
};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::kit::{Blocker, OnDrop, budget, builder, executor, until};
use crate::watchdog::watch;

fn keep(bytes: u64) -> Result<Permit, AcquireError> {
    Context::current().expect("this is a job").keep(bytes)
}

fn grow(bytes: u64) -> Result<(), AcquireError> {
    Context::current().expect("this is a job").grow(bytes)
}

#[test]
fn results_that_nobody_reads_are_counted_and_stop_new_admissions() {
    let _watch = watch!();
    let (executor, budget) = executor(2, 1000);
    let mut unread: Vec<_> = (0..100)
        .map(|n| executor.submit(Cost::new(10), move || keep(10).unwrap().with(n)).unwrap())
        .collect();
    until(|| unread.iter().all(|handle| handle.is_finished()));
    let stats = executor.stats();
    assert_eq!((stats.ledger.held_bytes, stats.running_bytes), (1000, 0));
    assert_eq!((stats.kept_permits, stats.kept_bytes), (100, 1000));
    let next = executor.submit(Cost::new(10), || ()).unwrap();
    let why = executor.stats().lanes[0].why.as_ref().unwrap().to_string();
    assert_eq!(
        why,
        "the job at the head needs 10 bytes; 0 bytes of 1000 bytes admissible are free; \
         0 running jobs hold 0 bytes and 0 permits hold 0 bytes, \
         and 100 results that are kept 1000 bytes; most is held by a result of default with \
         10 bytes, a result of default with 10 bytes, a result of default with 10 bytes",
    );
    // Read, it counts as well.
    let read: Lease<i32> = unread.pop().unwrap().join().unwrap();
    assert_eq!((*read, executor.stats().waiting_jobs), (99, 1));
    drop(read);
    next.join().unwrap();
    // A handle that is dropped drops the result.
    drop(unread);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i3_a_lease_is_shrunk_split_and_moved_and_returns_its_bytes_once() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let job = || keep(60).unwrap().with(vec![7_u8; 10]);
    let mut lease = executor.submit(Cost::new(80), job).unwrap().join().unwrap();
    assert_eq!(budget.ledger().held_bytes, 60);
    lease.permit_mut().shrink_to(50);
    let part = lease.permit_mut().split(20).unwrap();
    assert_eq!((lease.bytes(), part.bytes(), budget.ledger().held_bytes), (30, 20, 50));
    let body: Lease<Box<[u8]>> = lease.map(Vec::into_boxed_slice);
    let sent: &dyn AsRef<[u8]> = &body;
    assert_eq!(sent.as_ref(), [7; 10]);
    let (send, receive) = bounded(1);
    std::thread::spawn(move || send.send(part).unwrap());
    drop(receive.recv().unwrap());
    assert_eq!(budget.ledger().held_bytes, 30);
    assert_eq!(executor.stats().kept_permits, 1);
    drop(body);
    assert_eq!((budget.ledger().held_bytes, budget.ledger().permits), (0, 0));
}

#[test]
fn i4_the_value_of_a_lease_is_dropped_before_its_bytes_return() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let (seen, see) = bounded(1);
    let its_budget = budget.clone();
    let value = OnDrop::new(move || seen.send(its_budget.ledger().held_bytes).unwrap());
    let lease = executor.submit(Cost::new(10), move || keep(4).unwrap().with(value)).unwrap();
    drop(lease.join().unwrap());
    assert_eq!(see.recv().unwrap(), 4);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn a_lease_outlives_its_lane_and_its_executor() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let tenant = executor.add_lane(LaneOptions::new("tenant").most_bytes(10)).unwrap();
    let kept = tenant.submit(Cost::new(10), || keep(8)).unwrap().join().unwrap().unwrap();
    drop(tenant);
    // As long as it holds bytes it is there, with its ceiling.
    let tenant = executor.lane("tenant").unwrap();
    let waits = tenant.submit(Cost::new(3), || ()).unwrap();
    assert_eq!(executor.stats().waiting_jobs, 1);
    assert!(waits.cancel());
    drop((tenant, executor));
    assert_eq!(budget.ledger().held_bytes, 8);
    drop(kept);
    assert_eq!((budget.ledger().held_bytes, budget.ledger().permits), (0, 0));
}

#[test]
fn a_job_keeps_no_more_than_it_holds_and_nothing_when_it_has_ended() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let job = || {
        let context = Context::current().unwrap();
        drop(context.keep(6).unwrap());
        assert_eq!(context.held_bytes(), 4);
        let refused = context.keep(5).unwrap_err();
        (context, refused)
    };
    let (context, refused) = executor.submit(Cost::new(10), job).unwrap().join().unwrap();
    assert_eq!(refused, AcquireError::NotHeld { kept_bytes: 5, held_bytes: 4 });
    assert_eq!(context.held_bytes(), 0);
    // The place among the running jobs is another's by now.
    let blocker = Blocker::on(executor.default_lane(), 10);
    assert_eq!(context.keep(0).unwrap_err(), AcquireError::Ended);
    assert_eq!(context.grow(0).unwrap_err(), AcquireError::Ended);
    blocker.release();
    drop(executor);
    assert_eq!(context.keep(0).unwrap_err(), AcquireError::Ended);
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i9_who_waits_for_bytes_that_it_holds_itself_gets_an_error() {
    let _watch = watch!();
    let budget = budget(100);
    budget.set_stall_timeout(Some(Duration::from_millis(1)));
    let narrow = LaneOptions::new("narrow").capacity(0);
    let capped = LaneOptions::new("capped").most_bytes(30);
    let executor = builder(1, &budget).lane(narrow).lane(capped).build().unwrap();
    let capped = executor.lane("capped").unwrap();
    let kept = executor.submit(Cost::new(60), || keep(60)).unwrap().join().unwrap().unwrap();
    let own = capped.submit(Cost::new(20), || keep(20)).unwrap().join().unwrap().unwrap();

    let waits = executor.submit(Cost::new(50), || ()).unwrap();
    let error = waits.join().unwrap_err();
    assert!(matches!(error, JoinError::Stalled { needed_bytes: 50, free_bytes: 20, .. }));
    assert_eq!(
        error.to_string(),
        "budget stands still: job needs 50 bytes and 20 bytes are free; no job runs, and 2 permits \
         hold 80 bytes",
    );
    let narrow = executor.lane("narrow").unwrap();
    let refused = narrow.submit(Cost::new(50), || 7).unwrap_err();
    assert!(matches!(refused.reason, Refused::Stalled { permits: 2, held_bytes: 80, .. }));
    assert_eq!((refused.work)(), 7);
    let refused = budget.acquire(50).unwrap_err();
    assert!(matches!(refused, AcquireError::Stalled { needed_bytes: 50, permits: 2, .. }));
    // Its lane's ceiling is taken up by what it kept.
    let waits = capped.submit(Cost::new(20), || ()).unwrap();
    assert!(matches!(waits.join(), Err(JoinError::Stalled { .. })));
    executor.submit(Cost::new(20), || ()).unwrap().join().unwrap();
    assert_eq!(executor.stats().counts.stalled, 3);
    drop((kept, own));
}

#[test]
fn nobody_is_ended_while_a_job_runs_or_when_that_is_switched_off() {
    let _watch = watch!();
    let (executor, budget) = executor(2, 100);
    budget.set_stall_timeout(Some(Duration::ZERO));
    let permit = budget.acquire(50).unwrap();
    let blocker = Blocker::on(executor.default_lane(), 10);
    let waits = executor.submit(Cost::new(60), || ()).unwrap();
    // Longer than between two looks.
    let waits = waits.join_timeout(Duration::from_millis(600)).expect_err("it waits");
    budget.set_stall_timeout(None);
    blocker.release();
    let waits = waits.join_timeout(Duration::from_millis(600)).expect_err("it waits");
    drop(permit);
    waits.join().unwrap();
}

#[test]
fn who_waits_for_bytes_that_were_acquired_waits_as_long_as_their_owner_likes() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    budget.set_stall_timeout(Some(Duration::ZERO));
    let in_use = budget.acquire(60).unwrap();
    let kept = executor.submit(Cost::new(20), || keep(20)).unwrap().join().unwrap().unwrap();
    let waits = executor.submit(Cost::new(50), || 7).unwrap();
    // Longer than between two looks.
    let waits = waits.join_timeout(Duration::from_millis(600)).expect_err("it waits");
    drop(in_use);
    assert_eq!(waits.join().unwrap(), 7);
    // It would fit beside what is in use, if what is kept were returned.
    let in_use = budget.acquire(40).unwrap();
    let waits = executor.submit(Cost::new(50), || ()).unwrap();
    assert!(matches!(waits.join(), Err(JoinError::Stalled { .. })));
    drop((in_use, kept));
}

#[test]
fn i9_jobs_that_all_hold_some_and_all_want_more_end() {
    let _watch = watch!();
    let (executor, budget) = executor(4, 100);
    let all_hold_some = Arc::new(Barrier::new(4));
    let jobs: Vec<_> = (0..4)
        .map(|_| {
            let all_hold_some = Arc::clone(&all_hold_some);
            let work = move || {
                all_hold_some.wait();
                let grown = grow(40);
                all_hold_some.wait();
                grown
            };
            executor.submit(Cost::new(20), work).unwrap()
        })
        .collect();
    for job in jobs {
        let refused = job.join().unwrap().unwrap_err();
        let AcquireError::NotNow { needed_bytes: 40, free_bytes: 20, .. } = refused else {
            panic!("{refused:?}");
        };
    }
    assert_eq!(budget.ledger().held_bytes, 0);
    // What a job grew by it may keep, and what it does not keep returns with it.
    let job = || {
        grow(50).unwrap();
        keep(60).unwrap()
    };
    let kept = executor.submit(Cost::new(20), job).unwrap().join().unwrap();
    assert_eq!((kept.bytes(), budget.ledger().held_bytes), (60, 60));
}

/// A job that grows when it is told to.
struct Grower {
    tell: Sender<u64>,
    grown: Receiver<bool>,
    handle: Handle<()>,
}

impl Grower {
    fn on(lane: &Lane, bytes: u64) -> Grower {
        let ((tell, told), (answer, grown)) = (bounded(0), bounded(0));
        let work = move || {
            for bytes in told {
                answer.send(grow(bytes).is_ok()).unwrap();
            }
        };
        Grower { tell, grown, handle: lane.submit(Cost::new(bytes), work).unwrap() }
    }

    fn grows(&self, bytes: u64) -> bool {
        self.tell.send(bytes).unwrap();
        self.grown.recv().unwrap()
    }

    fn end(self) {
        drop(self.tell);
        self.handle.join().unwrap();
    }
}

#[test]
fn i2_a_job_that_grows_does_not_pass_who_waits_for_bytes() {
    let _watch = watch!();
    let budget = budget(100);
    let guaranteed = LaneOptions::new("guaranteed").guaranteed_bytes(30);
    let executor = builder(3, &budget).lane(guaranteed).build().unwrap();
    let common = Grower::on(executor.default_lane(), 30);
    let own = Grower::on(&executor.lane("guaranteed").unwrap(), 10);
    assert!(common.grows(10));
    let large = executor.submit(Cost::new(50), || ()).unwrap();
    assert_eq!(executor.stats().waiting_jobs, 1);
    assert!(!common.grows(1));
    // Within the guarantee: the large one could not have that anyway.
    assert!(own.grows(20));
    assert!(!own.grows(1));
    budget.set_overtaking(Overtaking::at_most(2));
    assert!(common.grows(1));
    assert!(own.grows(1));
    assert!(!common.grows(1), "it has been passed as often as allowed");
    assert_eq!(budget.ledger().held_bytes, 72);
    common.end();
    large.join().unwrap();
    own.end();
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn a_job_grows_no_further_than_its_lane_may() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(2, &budget).lane(LaneOptions::new("capped").most_bytes(30));
    let executor = executor.build().unwrap();
    let capped = executor.lane("capped").unwrap();
    let job = || {
        let context = Context::current().unwrap();
        let refused = context.grow(11).unwrap_err();
        context.grow(10).unwrap();
        refused
    };
    let refused = capped.submit(Cost::new(20), job).unwrap().join().unwrap();
    assert_eq!(refused, AcquireError::NeverFits { needed_bytes: 31, admissible_bytes: 30 });
    let job = || grow(u64::MAX).unwrap_err();
    let refused = executor.submit(Cost::new(20), job).unwrap().join().unwrap();
    let needed_bytes = u64::MAX;
    assert_eq!(refused, AcquireError::NeverFits { needed_bytes, admissible_bytes: 100 });
}

/// Somebody else waits for what is acquired, and that does not hide who waits for results.
#[test]
fn a_lane_filled_by_its_own_results_stalls_beside_an_acquirer_that_waits_for_another() {
    let _watch = watch!();
    let budget = budget(100);
    budget.set_stall_timeout(Some(Duration::from_millis(10)));
    let lane = LaneOptions::new("narrow").most_bytes(10);
    let executor = builder(2, &budget).lane(lane).build().unwrap();
    let narrow = executor.lane("narrow").unwrap();
    let keep = || Context::current().unwrap().keep(8).unwrap();
    let kept = narrow.submit(Cost::new(8), keep).unwrap().join().unwrap();
    let acquired = budget.acquire(50).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| budget.acquire(90).map(drop));
        until(|| executor.stats().blocked_acquires == 1);
        let stalled = narrow.submit(Cost::new(8), || ()).unwrap();
        assert!(matches!(stalled.join(), Err(JoinError::Stalled { .. })));
        drop((acquired, kept));
        waits.join().unwrap().unwrap();
    });
}
