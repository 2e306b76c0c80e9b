//! Every handle resolves, to what became of its job.

use std::sync::Arc;
use std::time::Duration;

use admit::{Context, Cost, Handle, JoinError};

use crate::kit::{Blocker, aside, budget, builder, executor, until};
use crate::watchdog::watch;

#[test]
fn i6_every_handle_resolves_to_what_became_of_its_job() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(2, &budget).build().unwrap();
    let submit = |bytes: u64| executor.submit(Cost::new(bytes), move || bytes).unwrap();
    assert_eq!(submit(7).join().unwrap(), 7);

    let page = submit(5).join().unwrap();
    let bad = executor.submit(Cost::new(1), move || -> u8 { panic!("page {page}") }).unwrap();
    match bad.join().unwrap_err() {
        JoinError::Panicked(panic) => {
            assert_eq!(panic.message().as_deref(), Some("page 5"));
            assert_eq!(*panic.into_payload().downcast::<String>().unwrap(), "page 5");
        }
        other => panic!("{other}"),
    }

    // Joined by threads that wait already when it happens.
    let blocker = Blocker::on(executor.default_lane(), 50);
    let [cancelled, evicted] = [60, 90].map(|bytes| Arc::new(submit(bytes)));
    let aborted = aside({
        let job = submit(60);
        move || job.join()
    });
    assert!(cancelled.cancel());
    assert!(matches!(unshare(cancelled).join(), Err(JoinError::Cancelled)));
    budget.resize(80, 0);
    assert!(matches!(
        unshare(evicted).join(),
        Err(JoinError::NeverFits { needed_bytes: 90, admissible_bytes: 80 })
    ));
    executor.abort_waiting();
    assert!(matches!(aborted.recv().unwrap(), Err(JoinError::Closed)));

    let ended = aside({
        let job = submit(60);
        move || job.join()
    });
    until(|| executor.stats().waiting_jobs == 1);
    let gone = aside(move || drop(executor));
    assert!(matches!(ended.recv().unwrap(), Err(JoinError::Closed)));
    blocker.release();
    gone.recv().unwrap();
    assert_eq!(budget.ledger().held_bytes, 0);
}

fn unshare<T>(handle: Arc<Handle<T>>) -> Handle<T> {
    Arc::try_unwrap(handle).expect("shared with nobody")
}

#[test]
fn i6_a_job_that_runs_decides_itself_what_a_cancel_means() {
    let _watch = watch!();
    let (executor, _) = executor(1, 100);
    let (started, is_started) = crossbeam_channel::bounded(0);
    let job = executor.submit(Cost::new(1), move || {
        let context = Context::current().unwrap();
        started.send(()).unwrap();
        until(|| context.is_cancelled());
        context
    });
    let job = job.unwrap();
    is_started.recv().unwrap();
    assert!(!job.cancel());
    let context = job.join().unwrap();
    assert!(context.is_cancelled(), "it may outlive the job");
    assert!(Context::current().is_none());
}

#[test]
fn i6_a_handle_that_gives_up_can_be_joined_again() {
    let _watch = watch!();
    let (executor, _) = executor(1, 100);
    let Blocker { release, handle } = Blocker::on(executor.default_lane(), 1);
    let handle = handle.try_join().unwrap_err();
    let handle = handle.join_timeout(Duration::ZERO).unwrap_err();
    let handle = handle.join_timeout(Duration::from_micros(100)).unwrap_err();
    let joined = aside(move || handle.join_timeout(Duration::MAX).unwrap());
    drop(release);
    joined.recv().unwrap().unwrap();
}
