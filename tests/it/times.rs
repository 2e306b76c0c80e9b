//! Waits are recorded by lane, and by how they ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admit::{Cost, Ended, LaneOptions, Refused};

use crate::kit::{Blocker, budget, builder, until};
use crate::watchdog::watch;

#[test]
fn every_end_is_in_the_histogram_of_its_lane_and_kind() {
    let _watch = watch!();
    let budget = budget(100);
    let options = LaneOptions::new("lane").capacity(4);
    let executor = builder(1, &budget).lane(options).build().unwrap();
    let lane = executor.lane("lane").unwrap();
    lane.submit(Cost::new(1), || ()).unwrap().join().unwrap();
    assert!(lane.submit(Cost::new(1), || panic!("on purpose")).unwrap().join().is_err());
    let blocker = Blocker::on(&lane, 100);
    let cancelled = lane.submit(Cost::new(1), || ()).unwrap();
    cancelled.cancel();
    let soon = lane.start_within(Duration::from_millis(20));
    assert!(soon.submit(Cost::new(1), || ()).unwrap().join().is_err());
    let evicted = lane.submit(Cost::new(90), || ()).unwrap();
    budget.resize(80, 0);
    assert!(evicted.join().is_err());
    assert!(lane.submit(Cost::new(90), || ()).is_err());
    let waiting: Vec<_> = (0..4).map(|_| lane.submit(Cost::new(1), || ()).unwrap()).collect();
    let full = lane.submit_timeout(Cost::new(1), Duration::from_millis(10), || ());
    assert!(matches!(full.unwrap_err().reason, Refused::Full(_)));
    executor.abort_waiting();
    assert!(waiting.into_iter().all(|handle| handle.join().is_err()));
    blocker.release();
    executor.close();
    assert!(lane.submit(Cost::new(1), || ()).is_err());

    let counts = executor.stats().lanes[1].counts;
    let recorded = || lane.wait_times();
    for ended in Ended::ALL {
        let its = recorded().of(ended).map_or(0, |histogram| histogram.len());
        assert_eq!(its, counts.of(ended), "{ended:?}");
    }
    let expected = [2, 1, 1, 4, 1, 0, 1, 1, 1, 1, 0];
    assert_eq!(Ended::ALL.map(|ended| counts.of(ended)), expected);
    assert_eq!(executor.default_lane().wait_times().iter().count(), 0);
}

#[test]
fn the_wait_of_a_job_that_waited_is_recorded_in_microseconds() {
    let _watch = watch!();
    let executor = builder(1, &budget(100)).build().unwrap();
    let lane = executor.default_lane().clone();
    let blocker = Blocker::on(&lane, 100);
    let waits = lane.submit(Cost::new(1), || ()).unwrap();
    let long = Duration::from_millis(50);
    until(|| executor.stats().oldest_wait.is_some_and(|wait| wait >= long));
    blocker.release();
    waits.join().unwrap();
    let cancelled_at_once = Blocker::on(&lane, 100);
    lane.submit(Cost::new(1), || ()).unwrap().cancel();
    cancelled_at_once.release();
    let completed = lane.wait_times().of(Ended::Completed).unwrap().clone();
    // To within 1 %.
    assert!(completed.max() >= 49_500, "{}", completed.max());
    let sum = executor.stats().counts.waited;
    let recorded: f64 = completed.mean() * completed.len() as f64;
    let near = sum.as_micros() as f64;
    assert!((recorded - near).abs() <= near * 0.02 + 10.0, "{recorded} of {near}");
}

#[test]
fn the_wait_of_a_job_that_never_ran_is_that_to_its_end() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(1, &budget).capacity(4).build().unwrap();
    let lane = executor.default_lane().clone();
    let blocker = Blocker::on(&lane, 100);
    let long = Duration::from_millis(50);
    let expires = lane.start_within(long).submit(Cost::new(1), || ()).unwrap();
    let waiting = [1, 1, 90].map(|bytes| lane.submit(Cost::new(bytes), || ()).unwrap());
    let full = lane.submit_timeout(Cost::new(1), 2 * long, || ());
    assert!(expires.join().is_err());
    until(|| executor.stats().oldest_wait.is_some_and(|wait| wait >= long));
    waiting[0].cancel();
    budget.resize(80, 0);
    executor.abort_waiting();
    blocker.release();
    let wait_times = lane.wait_times();
    let mut ends = vec![Ended::Expired, Ended::Cancelled, Ended::Evicted, Ended::Aborted];
    // It got the place of the one that expired, or was refused just before.
    ends.extend(full.is_err().then_some(Ended::RefusedFull));
    for ended in ends {
        let longest = wait_times.of(ended).unwrap().max();
        assert!(longest >= 49_500, "{ended:?} after {longest} us");
    }
}

#[test]
fn the_run_of_a_job_is_recorded_in_microseconds_also_within_another() {
    let _watch = watch!();
    let executor = Arc::new(builder(1, &budget(100)).build().unwrap());
    let lane = executor.default_lane().clone();
    let long = Duration::from_millis(20);
    let runs_for = move |long: Duration| {
        let began = Instant::now();
        until(|| began.elapsed() >= long);
    };
    lane.submit(Cost::new(1), move || runs_for(long)).unwrap().join().unwrap();
    let inner = lane.clone();
    let within = move || inner.submit(Cost::new(1), move || runs_for(long)).unwrap().join();
    lane.submit(Cost::new(1), within).unwrap().join().unwrap().unwrap();
    assert!(lane.submit(Cost::new(1), || panic!("on purpose")).unwrap().join().is_err());
    let late = Blocker::on(&lane, 100);
    lane.submit(Cost::new(1), || ()).unwrap().cancel();
    late.release();
    executor.drain().unwrap();

    let run_times = lane.run_times();
    let ends: Vec<_> = run_times.iter().map(|(ended, times)| (ended, times.len())).collect();
    assert_eq!(ends, [(Ended::Completed, 4), (Ended::Panicked, 1)]);
    let completed = run_times.of(Ended::Completed).unwrap();
    // To within 1 %, and of the four only the last may have been short.
    assert!(completed.value_at_quantile(0.3) >= 19_000, "{}", completed.value_at_quantile(0.3));
    assert_eq!(executor.default_lane().wait_times().of(Ended::Completed).unwrap().len(), 4);
}
