//! A subscriber that panics. In a process of its own: workers report to the global subscriber.
#![cfg(feature = "tracing")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit::{Budget, Cost, Executor, JoinError, Refused};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static PANICS_AT: Mutex<&str> = Mutex::new("");
static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Panics;

fn called(what: &str) {
    let panics = *PANICS_AT.lock().unwrap() == what;
    if panics {
        CALLS.fetch_add(1, Ordering::Relaxed);
        panic!("a subscriber that panics at {what}");
    }
}

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        called("enabled");
        metadata.target() == "admit"
    }

    // So that `enabled` is asked each time.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        called("new_span");
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        called("event");
    }

    fn enter(&self, _: &Id) {
        called("enter");
    }

    fn exit(&self, _: &Id) {
        called("exit");
    }

    fn try_close(&self, _: Id) -> bool {
        called("try_close");
        true
    }
}

#[test]
fn a_subscriber_that_panics_takes_no_job_its_value_and_no_scope_its_end() {
    std::panic::set_hook(Box::new(|_| {}));
    tracing::subscriber::set_global_default(Panics).unwrap();
    let budget = Budget::new(100, 0).unwrap();
    let executor = Executor::builder().workers(1).budget(budget.clone()).capacity(1).build();
    let executor = executor.unwrap();
    let cost = Cost::new(1);
    for at in ["enabled", "new_span", "event", "enter", "exit", "try_close"] {
        *PANICS_AT.lock().unwrap() = at;
        assert_eq!(executor.submit(cost, || 7).unwrap().join().unwrap(), 7, "at {at}");
        let failed = executor.submit(cost, || panic!("of the job")).unwrap().join().unwrap_err();
        assert!(matches!(failed, JoinError::Panicked(_)), "at {at}");
        assert!(failed.to_string().contains("of the job"), "{failed} at {at}");
        executor.scope(|scope| {
            let permit = budget.acquire(100).unwrap();
            let waits = scope.submit(cost, || 7).unwrap();
            let refused = scope.try_submit(cost, || ()).unwrap_err();
            assert!(matches!(refused.reason, Refused::Full { .. }), "{} at {at}", refused.reason);
            let lane = executor.default_lane();
            assert!(lane.try_reserve(cost).is_err());
            drop(permit);
            assert_eq!(waits.join().unwrap(), 7, "at {at}");
        });
        assert!(CALLS.swap(0, Ordering::Relaxed) > 0, "nobody called {at}");
    }
    *PANICS_AT.lock().unwrap() = "";
    executor.close();
    let counts = executor.stats().counts;
    assert_eq!((counts.completed, counts.panicked), (12, 6));
}
