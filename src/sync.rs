//! The locks, threads and atomics everything else uses, so that the interleaving checks can replace them.
//!
//! Built with `--cfg admit_shuttle`, the crate runs on shuttle's scheduler; otherwise on
//! parking_lot and std. The one lock made elsewhere is that of the registry of executors, which
//! is a static and never held while anything waits.

#[cfg(not(admit_shuttle))]
mod imp {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use std::thread::{JoinHandle, Thread, current, park};
    pub(crate) use std::thread_local;

    /// Rounds of spinning before a thread parks: about 15 us where a pause takes 20 ns, which is
    /// what it costs to fall asleep and be woken. So waiting costs at most twice the better way.
    pub(crate) const SPIN_ROUNDS: u32 = 100;

    pub(crate) fn park_timeout(timeout: std::time::Duration) {
        std::thread::park_timeout(timeout);
    }

    pub(crate) fn spin(round: u32) {
        // Yielding now and then lets the thread that is waited for run when cores are few.
        if round % 16 == 15 {
            std::thread::yield_now();
        } else {
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
    }

    pub(crate) fn spawn<F>(
        name: String,
        stack_bytes: Option<usize>,
        body: F,
    ) -> std::io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        let mut thread = std::thread::Builder::new().name(name);
        if let Some(bytes) = stack_bytes {
            thread = thread.stack_size(bytes);
        }
        thread.spawn(body)
    }
}

#[cfg(admit_shuttle)]
mod imp {
    pub(crate) use shuttle::sync::MutexGuard;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use shuttle::thread::{JoinHandle, Thread, current, park};
    pub(crate) use shuttle::thread_local;

    /// Spinning adds interleavings that differ in nothing.
    pub(crate) const SPIN_ROUNDS: u32 = 0;

    /// With parking_lot's interface: a panic does not poison it.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }

    /// A model has no clock: a timed wait may end at any moment, so it is one yield.
    pub(crate) fn park_timeout(_timeout: std::time::Duration) {
        shuttle::thread::yield_now();
    }

    pub(crate) fn spin(_round: u32) {}

    pub(crate) fn spawn<F>(
        name: String,
        _stack_bytes: Option<usize>,
        body: F,
    ) -> std::io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        shuttle::thread::Builder::new().name(name).spawn(body)
    }
}

pub(crate) use imp::*;
