//! Who is admitted, and how many bytes they hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use admit::{AcquireError, Budget, Cost, LaneOptions, Overtaking};

use crate::kit::{Blocker, builder, until};
use crate::watchdog::watch;

#[test]
fn i1_admitted_bytes_never_exceed_the_admissible_bytes() {
    let _watch = watch!();
    let budget = Budget::new(110, 10).unwrap();
    let executor = builder(8, &budget).build().unwrap();
    let running = Arc::new(AtomicU64::new(0));
    let most = Arc::new(AtomicU64::new(0));
    let mut rng = fastrand::Rng::with_seed(1);
    let jobs: Vec<_> = (0..2000)
        .map(|_| {
            let bytes = if rng.u8(..) < 20 { 100 } else { rng.u64(0..60) };
            let (budget, running, most) = (budget.clone(), running.clone(), most.clone());
            let work = move || {
                let sum = running.fetch_add(bytes, Ordering::SeqCst) + bytes;
                most.fetch_max(sum, Ordering::SeqCst);
                let ledger = budget.ledger();
                assert!(sum <= 100, "jobs that declared {sum} bytes run at once");
                assert!(ledger.held_bytes <= ledger.admissible_bytes());
                assert!(ledger.held_bytes >= bytes, "a running job's bytes are not held");
                std::thread::yield_now();
                running.fetch_sub(bytes, Ordering::SeqCst);
            };
            executor.submit(Cost::new(bytes), work).unwrap()
        })
        .collect();
    jobs.into_iter().for_each(|job| job.join().unwrap());
    let peak = budget.ledger().peak_held_bytes;
    assert!(peak <= 100 && peak >= most.load(Ordering::SeqCst));
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn i1_input_is_charged_as_waiting_and_then_as_running() {
    let _watch = watch!();
    let budget = Budget::new(100, 0).unwrap();
    let executor = builder(2, &budget).waiting_bytes(40).build().unwrap();
    assert_eq!(budget.ledger().admissible_bytes(), 60);
    let blocker = Blocker::on(executor.default_lane(), 30);
    let waits = executor.submit(Cost::new(20).input(20), || ()).unwrap();
    assert_eq!(executor.stats().waiting_input_bytes, 20);
    assert_eq!(budget.ledger().held_bytes, 30);
    blocker.release();
    waits.join().unwrap();
    assert_eq!(executor.stats().waiting_input_bytes, 0);
    assert_eq!(budget.ledger().peak_held_bytes, 40);
}

#[test]
fn i2_nobody_passes_the_job_at_the_head() {
    let _watch = watch!();
    for round in 0..20 {
        let budget = Budget::new(10, 0).unwrap();
        let executor = builder(8, &budget).lane(LaneOptions::new("other")).build().unwrap();
        let lanes = [executor.default_lane().clone(), executor.lane("other").unwrap()];
        let permit = budget.try_acquire(5).unwrap();
        let started = Arc::new(AtomicUsize::new(0));
        let (done, wait) = crossbeam_channel::bounded::<()>(0);
        let seen = Arc::clone(&started);
        let big = lanes[round % 2].submit(Cost::new(10), move || {
            let before = seen.load(Ordering::SeqCst);
            let _ = wait.recv();
            (before, seen.load(Ordering::SeqCst))
        });
        let small: Vec<_> = (0..300)
            .map(|n| {
                let started = Arc::clone(&started);
                let work = move || started.fetch_add(1, Ordering::SeqCst);
                lanes[n % 2].submit(Cost::new(1), work).unwrap()
            })
            .collect();
        assert!(matches!(budget.try_acquire(1), Err(AcquireError::NotNow { free_bytes: 5, .. })));
        assert_eq!(executor.stats().running_jobs, 0);
        drop(permit);
        until(|| budget.ledger().held_bytes == 10);
        assert!(budget.try_acquire(1).is_err());
        drop(done);
        assert_eq!(big.unwrap().join().unwrap(), (0, 0), "small jobs passed the big one");
        assert!(small.into_iter().all(|job| job.join().is_ok()));
    }
}

#[test]
fn i2_where_it_is_allowed_a_job_is_passed_so_many_times_and_no_more() {
    let _watch = watch!();
    for (most, lanes) in [(0, 1), (1, 1), (5, 1), (5, 2)] {
        let budget = Budget::new(10, 0).unwrap();
        budget.set_overtaking(Overtaking::at_most(most));
        let executor = builder(4, &budget).lane(LaneOptions::new("other")).build().unwrap();
        let all = [executor.default_lane().clone(), executor.lane("other").unwrap()];
        let permit = budget.try_acquire(5).unwrap();
        let (order, in_order) = crossbeam_channel::unbounded();
        let send = order.clone();
        let big = all[0].submit(Cost::new(10), move || send.send("big").unwrap()).unwrap();
        let small: Vec<_> = (0..40)
            .map(|n| {
                let send = order.clone();
                all[n % lanes].submit(Cost::new(1), move || send.send("small").unwrap()).unwrap()
            })
            .collect();
        until(|| executor.stats().counts.completed == u64::from(most));
        assert!(budget.try_acquire(1).is_err());
        drop((permit, order));
        big.join().unwrap();
        small.into_iter().for_each(|job| job.join().unwrap());
        let at = in_order.iter().position(|job| job == "big");
        assert_eq!(at, Some(most as usize), "{lanes} lanes");
        assert_eq!(executor.stats().counts.overtook, u64::from(most));
    }
}

#[test]
fn i2_jobs_of_one_lane_start_in_the_order_of_their_submission() {
    let _watch = watch!();
    let budget = Budget::new(10, 0).unwrap();
    let executor = builder(4, &budget).build().unwrap();
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut rng = fastrand::Rng::with_seed(2);
    let blocker = Blocker::on(executor.default_lane(), 10);
    // Costs above one half run alone, so that the order of starts can be seen.
    let jobs: Vec<_> = (0..200)
        .map(|n| {
            let order = Arc::clone(&order);
            executor.submit(Cost::new(rng.u64(6..=10)), move || order.lock().push(n)).unwrap()
        })
        .collect();
    blocker.release();
    jobs.into_iter().for_each(|job| job.join().unwrap());
    assert!(order.lock().is_sorted());
}

#[test]
fn i2_executors_and_permits_on_one_budget_are_served_in_one_order() {
    let _watch = watch!();
    let budget = Budget::new(10, 0).unwrap();
    let (one, two) = (builder(2, &budget).build().unwrap(), builder(2, &budget).build().unwrap());
    let blocker = Blocker::on(one.default_lane(), 5);
    let acquirer = {
        let budget = budget.clone();
        crate::kit::aside(move || budget.acquire(10).unwrap())
    };
    until(|| one.stats().blocked_acquires == 1);
    let small = two.submit(Cost::new(1), || ()).unwrap();
    assert_eq!(two.stats().waiting_jobs, 1);
    blocker.release();
    let permit = acquirer.recv().unwrap();
    assert_eq!(two.stats().waiting_jobs, 1);
    drop(permit);
    small.join().unwrap();
}

#[test]
fn as_many_jobs_run_at_once_as_there_are_workers_and_bytes_for() {
    let _watch = watch!();
    let budget = Budget::new(12, 0).unwrap();
    for workers in [2, 4] {
        let executor = builder(workers, &budget).build().unwrap();
        for _ in 0..200 {
            // Each waits for all others: a worker that is not called would be missed for ever.
            let all = Arc::new(std::sync::Barrier::new(workers));
            let jobs: Vec<_> = (0..workers)
                .map(|_| {
                    let all = Arc::clone(&all);
                    executor.submit(Cost::new(3), move || all.wait().is_leader()).unwrap()
                })
                .collect();
            assert_eq!(
                jobs.into_iter().filter_map(|job| job.join().ok()).filter(|leads| *leads).count(),
                1
            );
        }
    }
}
