//! Jobs that submit jobs and wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use admit::{
    AcquireError, Budget, Context, Cost, DrainError, Executor, Handle, JoinError, Refused,
};
use crossbeam_channel::bounded;

use crate::kit::{Blocker, OnDrop, budget, builder, executor, until};
use crate::watchdog::watch;

fn shared(workers: usize, bytes: u64, capacity: usize) -> (Arc<Executor>, Budget) {
    let budget = budget(bytes);
    (Arc::new(builder(workers, &budget).capacity(capacity).build().unwrap()), budget)
}

/// A job that submits `width` jobs like it, and waits for them, `depth` times.
fn fan_out(executor: &Arc<Executor>, width: usize, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let child = || {
        let inner = Arc::clone(executor);
        move || fan_out(&inner, width, depth - 1)
    };
    let submitted: Vec<_> = (0..width).map(|_| executor.submit(Cost::new(10), child())).collect();
    let sums = submitted.into_iter().map(|submitted| match submitted {
        Ok(handle) => handle.join().unwrap(),
        // The lane is full: within the own bytes, then.
        Err(refused) => {
            assert_eq!(refused.reason, Refused::OwnWorker);
            (refused.work)()
        }
    });
    sums.sum()
}

#[test]
fn i9_a_fan_out_of_depth_2_completes_with_capacity_1_and_one_worker() {
    let _watch = watch!();
    for (workers, capacity) in [(1, 1), (1, 0), (1, 100), (2, 1), (4, 3)] {
        let (executor, budget) = shared(workers, 40, capacity);
        let inner = Arc::clone(&executor);
        let job = executor.submit(Cost::new(10), move || fan_out(&inner, 5, 2)).unwrap();
        assert_eq!(job.join().unwrap(), 25, "{workers} workers, capacity {capacity}");
        drop(executor);
        assert_eq!(budget.ledger().held_bytes, 0);
    }
}

#[test]
fn a_job_that_is_waited_for_by_a_job_runs_within_its_bytes() {
    let _watch = watch!();
    let waiting = builder(1, &budget(120)).waiting_bytes(20).build().unwrap();
    let executor = Arc::new(waiting);
    let inner = Arc::clone(&executor);
    let parent = executor.submit(Cost::new(50), move || {
        let its = Arc::clone(&inner);
        let child = inner.submit(Cost::new(30).input(20), move || {
            let stats = its.stats();
            assert_eq!((stats.ledger.held_bytes, stats.running_jobs), (50, 1));
            // Its input is still there.
            assert_eq!((stats.waiting_jobs, stats.waiting_input_bytes), (1, 20));
            let context = Context::current().unwrap();
            assert_eq!(context.held_bytes(), 50);
            (thread::current().id(), context.keep(7).unwrap())
        });
        let (thread, kept) = child.unwrap().join().unwrap();
        assert_eq!(thread, thread::current().id());
        assert_eq!(inner.stats().waiting_input_bytes, 0);
        let panics = inner.submit(Cost::new(1), || panic!("no such page")).unwrap();
        assert!(matches!(panics.join(), Err(JoinError::Panicked(_))));
        let above = inner.submit(Cost::new(44), || ()).unwrap();
        match above.join() {
            Err(JoinError::AboveOwn { needed_bytes: 44, held_bytes: 43 }) => {}
            other => panic!("{other:?}"),
        }
        kept
    });
    assert_eq!(parent.unwrap().join().unwrap().bytes(), 7);
    until(|| executor.stats().counts.completed == 3);
    assert_eq!(executor.stats().counts.panicked, 1);
}

#[test]
fn i4_the_closure_of_a_job_that_a_job_runs_is_dropped_before_its_input_returns() {
    let _watch = watch!();
    let executor = Arc::new(builder(1, &budget(100)).waiting_bytes(20).build().unwrap());
    let inner = Arc::clone(&executor);
    let parent = executor.submit(Cost::new(50), move || {
        let its = Arc::clone(&inner);
        let (seen, see) = bounded(1);
        let drops = OnDrop::new(move || seen.send(its.stats().waiting_input_bytes).unwrap());
        let child = inner.submit(Cost::new(0).input(20), move || drop(drops)).unwrap();
        child.join().unwrap();
        see.recv().unwrap()
    });
    assert_eq!(parent.unwrap().join().unwrap(), 20);
}

#[test]
fn a_worker_that_waits_runs_no_strangers_job() {
    let _watch = watch!();
    let (executor, _) = shared(2, 100, 10);
    let other = Blocker::on(executor.default_lane(), 10);
    let (release, running) = (other.release.clone(), other.handle);
    let waits_no_more = Arc::new(AtomicBool::new(false));
    let (send, thread_of_parent) = bounded(1);
    let parent = {
        let waits_no_more = Arc::clone(&waits_no_more);
        let work = move || {
            send.send(thread::current().id()).unwrap();
            running.join().unwrap();
            waits_no_more.store(true, Ordering::SeqCst);
        };
        executor.submit(Cost::new(90), work).unwrap()
    };
    let parents = thread_of_parent.recv().unwrap();
    let strangers: Vec<Handle<()>> = (0..10)
        .map(|_| {
            let waits_no_more = Arc::clone(&waits_no_more);
            let work = move || {
                let is_elsewhere = thread::current().id() != parents;
                assert!(is_elsewhere || waits_no_more.load(Ordering::SeqCst));
            };
            executor.submit(Cost::new(1), work).unwrap()
        })
        .collect();
    drop((release, other.release));
    parent.join().unwrap();
    strangers.into_iter().for_each(|stranger| stranger.join().unwrap());
}

#[test]
fn i9_jobs_that_wait_for_each_other_get_an_error() {
    let _watch = watch!();
    let (executor, _) = shared(2, 100, 10);
    // Itself.
    let (send, own) = bounded::<Handle<()>>(1);
    let (tell, told) = bounded(1);
    let job = executor.submit(Cost::new(10), move || {
        tell.send(own.recv().unwrap().join()).unwrap();
    });
    send.send(job.unwrap()).unwrap();
    assert!(matches!(told.recv().unwrap(), Err(JoinError::Circle)));
    // Each other.
    let (to_first, second) = bounded::<Handle<()>>(1);
    let (to_second, first) = bounded::<Handle<()>>(1);
    let (tell, told) = bounded(2);
    let their = |other: crossbeam_channel::Receiver<Handle<()>>| {
        let tell = tell.clone();
        move || tell.send(other.recv().unwrap().join()).unwrap()
    };
    let one = executor.submit(Cost::new(10), their(second)).unwrap();
    let two = executor.submit(Cost::new(10), their(first)).unwrap();
    to_first.send(two).unwrap();
    to_second.send(one).unwrap();
    let ends = [told.recv().unwrap(), told.recv().unwrap()];
    let circles = ends.iter().filter(|end| matches!(end, Err(JoinError::Circle)));
    assert_eq!(circles.count(), 1, "{ends:?}");
}

#[test]
fn i9_a_circle_through_a_job_that_is_run_by_the_one_that_waits_is_an_error() {
    let _watch = watch!();
    let (executor, _) = shared(2, 100, 10);
    let (to_other, parent) = bounded::<Handle<()>>(1);
    let (to_child, other) = bounded::<Handle<()>>(1);
    let (tell, told) = bounded(2);
    let (its, tell_of_child) = (Arc::clone(&executor), tell.clone());
    let waits_for_parent = move || tell.send(parent.recv().unwrap().join()).unwrap();
    let waiting = executor.submit(Cost::new(10), waits_for_parent).unwrap();
    // No worker is left for the child, so that its parent runs it.
    until(|| executor.stats().free_workers == 1 && executor.stats().running_jobs == 1);
    let first = executor.submit(Cost::new(10), move || {
        let waits_for_other = move || tell_of_child.send(other.recv().unwrap().join()).unwrap();
        its.submit(Cost::new(10), waits_for_other).unwrap().join().unwrap();
    });
    to_other.send(first.unwrap()).unwrap();
    to_child.send(waiting).unwrap();
    let ends = [told.recv().unwrap(), told.recv().unwrap()];
    let circles = ends.iter().filter(|end| matches!(end, Err(JoinError::Circle)));
    assert_eq!(circles.count(), 1, "{ends:?}");
}

#[test]
fn i9_executors_that_submit_to_each_other_and_join_complete() {
    let _watch = watch!();
    fn ping(here: Arc<Executor>, there: Arc<Executor>, depth: usize, runs: Arc<AtomicUsize>) {
        runs.fetch_add(1, Ordering::SeqCst);
        if depth == 0 {
            return;
        }
        let next = {
            let (here, there, runs) = (Arc::clone(&there), here, Arc::clone(&runs));
            move || ping(here, there, depth - 1, runs)
        };
        match there.submit(Cost::new(10), next) {
            // It may wait for a place here, which only this job can make.
            Ok(handle) => match handle.join() {
                Ok(()) | Err(JoinError::Circle) => {}
                other => panic!("{other:?}"),
            },
            Err(refused) => {
                // A job of the other executor may run within one of this, on its worker.
                assert!(matches!(refused.reason, Refused::Circle | Refused::OwnWorker));
                (refused.work)();
            }
        }
    }
    for round in 0..200 {
        let ((a, _), (b, _)) = (shared(1, 10, round % 2), shared(1, 10, 1));
        let runs = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..4)
            .map(|n| {
                let (here, there) = if n % 2 == 0 { (&a, &b) } else { (&b, &a) };
                let (its, other, runs) = (Arc::clone(here), Arc::clone(there), Arc::clone(&runs));
                here.submit(Cost::new(10), move || ping(its, other, 4, runs)).unwrap()
            })
            .collect();
        jobs.into_iter().for_each(|job| job.join().unwrap());
        until(|| runs.load(Ordering::SeqCst) == 20);
    }
}

#[test]
fn i9_a_job_does_not_wait_for_an_executor_whose_jobs_wait_for_it() {
    let _watch = watch!();
    let ((a, a_budget), (b, _)) = (shared(1, 10, 0), shared(1, 10, 0));
    let (start, started) = bounded(0);
    let (its_a, its_b) = (Arc::clone(&a), Arc::clone(&b));
    let on_b = b.submit(Cost::new(5), move || {
        started.recv().unwrap();
        // The job on A waits for this very worker.
        until(|| its_b.stats().lanes[0].blocked_submits == 1);
        let refused = its_a.submit(Cost::new(6), || 7).unwrap_err();
        assert_eq!((refused.reason, (refused.work)()), (Refused::Circle, 7));
        assert_eq!(its_a.stats().counts.refused_own_worker, 1);
        assert_eq!(a_budget.acquire(6).unwrap_err(), AcquireError::Circle);
        assert_eq!(its_a.drain(), Err(DrainError::Circle));
        // Larger than what this job holds, it would have to wait for a worker of A.
        drop(its_a);
    });
    let its_b = Arc::clone(&b);
    let on_a = a.submit(Cost::new(5), move || {
        start.send(()).unwrap();
        its_b.submit(Cost::new(6), || 7).unwrap().join().unwrap()
    });
    assert_eq!(on_a.unwrap().join().unwrap(), 7);
    on_b.unwrap().join().unwrap();
}

#[test]
fn i9_a_job_waits_for_a_larger_one_elsewhere_unless_that_would_close_a_circle() {
    let _watch = watch!();
    let ((a, _), (b, _)) = (shared(1, 10, 4), shared(1, 10, 4));
    let (both_run, others) = (Arc::new(std::sync::Barrier::new(2)), [(&a, &b), (&b, &a)]);
    let jobs: Vec<_> = others
        .into_iter()
        .map(|(here, there)| {
            let (there, both_run) = (Arc::clone(there), Arc::clone(&both_run));
            let work = move || {
                both_run.wait();
                there.submit(Cost::new(6), || ()).unwrap().join()
            };
            here.submit(Cost::new(5), work).unwrap()
        })
        .collect();
    let ends: Vec<_> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
    let circles = ends.iter().filter(|end| matches!(end, Err(JoinError::Circle)));
    assert_eq!(circles.count(), 1, "{ends:?}");
    let its_b = Arc::clone(&b);
    let waits = a.submit(Cost::new(5), move || its_b.submit(Cost::new(6), || 7).unwrap().join());
    assert_eq!(waits.unwrap().join().unwrap().unwrap(), 7);
}

#[test]
fn i9_an_executor_dropped_by_a_job_that_its_jobs_wait_for_does_not_wait_for_them() {
    let _watch = watch!();
    let ((a, _), (b, _)) = (shared(1, 10, 1), shared(1, 10, 1));
    let (send, handle) = bounded::<Handle<()>>(1);
    let (tell, told) = bounded(1);
    let (to_a, b_is_with_a) = bounded::<Arc<Executor>>(1);
    let (joins, is_joining) = bounded(0);
    let on_a = a.submit(Cost::new(5), move || {
        let b = b_is_with_a.recv().unwrap();
        is_joining.recv().unwrap();
        // Its job may not be in the wait yet; it will be while this one waits for its end, and then
        // it is the one that gets the error.
        drop(b);
    });
    send.send(on_a.unwrap()).unwrap();
    let on_b = b.submit(Cost::new(5), move || {
        let on_a = handle.recv().unwrap();
        joins.send(()).unwrap();
        tell.send(on_a.join()).unwrap();
    });
    drop(on_b.unwrap());
    to_a.send(b).unwrap();
    let end = told.recv().unwrap();
    assert!(matches!(end, Ok(()) | Err(JoinError::Circle)), "{end:?}");
}

#[test]
fn the_context_of_a_job_that_was_run_within_another_is_over_with_it() {
    let _watch = watch!();
    let (executor, budget) = executor(1, 100);
    let lane = executor.default_lane().clone();
    let parent = move || {
        let own = || Context::current().expect("this is a job");
        let child = lane.submit(Cost::new(10), own).unwrap().join().unwrap();
        assert_eq!(child.held_bytes(), 0);
        assert!(matches!(child.keep(1), Err(AcquireError::Ended)));
        assert!(matches!(child.grow(1), Err(AcquireError::Ended)));
        own().held_bytes()
    };
    assert_eq!(executor.submit(Cost::new(50), parent).unwrap().join().unwrap(), 50);
    assert_eq!(budget.ledger().held_bytes, 0);
}
