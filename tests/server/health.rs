//! When the server says that it does not work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::channel;

use admit::{Budget, Cost, Executor, Lane, LaneOptions, MIB};

use crate::history::History;
use crate::its_health::Health;

/// More looks than there are in the time after which nothing moves.
const LOOKS: usize = 12;

fn executor() -> (Arc<Executor>, Lane, History, Health) {
    let budget = Budget::new(64 * MIB, 0).unwrap();
    let builder = Executor::builder().workers(1).budget(budget);
    let executor = Arc::new(builder.lane(LaneOptions::new("light")).build().unwrap());
    let light = executor.lane("light").unwrap();
    let history = History::default();
    let health = Health::new(&executor, &light, &history);
    (executor, light, history, health)
}

#[test]
fn it_is_ill_when_light_jobs_wait_and_none_ends() {
    let (executor, light, history, health) = executor();
    let (release, wait) = channel::<()>();
    let stuck = executor.submit(Cost::new(MIB), move || wait.recv().is_err()).unwrap();
    let waiting = light.submit(Cost::new(MIB), || ()).unwrap();
    for _ in 0..LOOKS {
        assert_eq!(health.check().0, 200, "it has not lasted");
        history.look(&executor);
        if history.last_seconds(5).is_some() {
            break;
        }
    }
    let (status, why) = health.check();
    assert!(status == 503 && why.contains("none has ended"), "{status} {why}");

    drop(release);
    stuck.join().unwrap();
    waiting.join().unwrap();
    history.look(&executor);
    assert_eq!(health.check().0, 200);
}

/// However long each waits.
#[test]
fn it_is_well_while_light_jobs_end() {
    let (executor, light, history, health) = executor();
    let (let_go, go) = crossbeam_channel::bounded::<()>(0);
    let mut jobs = VecDeque::new();
    for _ in 0..2 * LOOKS {
        let go = go.clone();
        jobs.push_back(light.submit(Cost::new(MIB), move || go.recv().unwrap()).unwrap());
    }
    while jobs.len() > LOOKS {
        history.look(&executor);
        let_go.send(()).unwrap();
        jobs.pop_front().unwrap().join().unwrap();
        assert_eq!(health.check().0, 200);
    }
    for _ in jobs {
        let_go.send(()).unwrap();
    }
}

#[test]
fn it_is_ill_when_its_executor_takes_no_more_jobs() {
    let (executor, _light, _history, health) = executor();
    executor.close();
    let (status, why) = health.check();
    assert!(status == 503 && why.contains("stopping"), "{status} {why}");
}

#[test]
fn it_is_ill_when_no_light_job_fits_any_more() {
    let (executor, _light, _history, health) = executor();
    executor.budget().resize(MIB / 2, 0);
    let (status, why) = health.check();
    assert!(status == 503 && why.contains("never fits"), "{status} {why}");
}
