//! How many jobs have run, counted by each worker on a cache line of its own: counting costs a job next to
//! nothing, and all pools the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

static COUNTS: Mutex<Vec<Arc<Count>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Arc<Count> = {
        let count = Arc::new(Count::default());
        COUNTS.lock().expect("no panics").push(Arc::clone(&count));
        count
    };
}

/// A job has run on this thread.
pub(crate) fn one() {
    MINE.with(|count| {
        let before = count.0.load(Ordering::Relaxed);
        count.0.store(before + 1, Ordering::Release);
    });
}

/// Waits until so many jobs have run in this process.
pub(crate) fn wait_for(jobs: u64) {
    let ran = || {
        let counts = COUNTS.lock().expect("no panics");
        counts.iter().map(|count| count.0.load(Ordering::Acquire)).sum::<u64>()
    };
    while ran() < jobs {
        thread::sleep(Duration::from_micros(20));
    }
}
