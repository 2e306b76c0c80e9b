//! What the tests share: executors, jobs that wait, values that tell when they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use admit::{Budget, Builder, Cost, Executor, Handle, Lane};
use crossbeam_channel::{Receiver, Sender, bounded};

pub(crate) fn budget(bytes: u64) -> Budget {
    Budget::new(bytes, 0).unwrap()
}

pub(crate) fn builder(workers: usize, budget: &Budget) -> Builder {
    Executor::builder().workers(workers).budget(budget.clone())
}

pub(crate) fn executor(workers: usize, bytes: u64) -> (Executor, Budget) {
    let budget = budget(bytes);
    (builder(workers, &budget).build().unwrap(), budget)
}

/// Gives other threads the processor until the condition holds. The watchdog bounds it.
#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::yield_now();
    }
}

/// A job that runs until it is released.
pub(crate) struct Blocker {
    pub(crate) release: Sender<()>,
    pub(crate) handle: Handle<()>,
}

impl Blocker {
    pub(crate) fn on(lane: &Lane, bytes: u64) -> Blocker {
        let (release, wait) = bounded::<()>(0);
        let (started, is_started) = bounded(1);
        let work = move || {
            started.send(()).unwrap();
            let _ = wait.recv();
        };
        let handle = lane.submit(Cost::new(bytes), work).unwrap();
        is_started.recv().unwrap();
        Blocker { release, handle }
    }

    /// The same without waiting for the job's start.
    pub(crate) fn waiting_on(lane: &Lane, bytes: u64) -> Blocker {
        let (release, wait) = bounded::<()>(0);
        let handle = lane
            .submit(Cost::new(bytes), move || {
                let _ = wait.recv();
            })
            .unwrap();
        Blocker { release, handle }
    }

    pub(crate) fn release(self) {
        drop(self.release);
        self.handle.join().unwrap();
    }

    /// Releases the job without waiting for its end.
    pub(crate) fn let_go(self) {
        drop(self.release);
    }
}

/// Calls a function when it is dropped.
pub(crate) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    pub(crate) fn new(f: F) -> Self {
        OnDrop(Some(f))
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// Counts how many of something there are.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<AtomicUsize>);

pub(crate) struct Alive(Live);

impl Live {
    pub(crate) fn one(&self) -> Alive {
        self.0.fetch_add(1, Ordering::SeqCst);
        Alive(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, Ordering::SeqCst);
        assert_ne!(before, 0, "something was dropped twice");
    }
}

/// How many threads of this process have names that begin so. Linux keeps 15 bytes of a name.
#[cfg(target_os = "linux")]
pub(crate) fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between the listing and the reading.
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn threads_named(_prefix: &str) -> usize {
    0
}

/// Runs a function on a thread of its own, and gives what it returned through a channel, so
/// that a test can wait for it or look whether it has come.
pub(crate) fn aside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (send, receive) = bounded(1);
    thread::spawn(move || {
        let _ = send.send(f());
    });
    receive
}
