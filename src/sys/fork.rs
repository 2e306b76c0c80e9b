//! Whether the process was forked. A fork copies the memory and one thread: in the child an
//! executor's workers do not exist, and its lock may be held by a thread that does not either.

use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// Counts the forks between the program's start and this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    pub(crate) fn current() -> Generation {
        WATCH.call_once(watch);
        // Relaxed: it changes only while the process has one thread.
        Generation(GENERATION.load(Ordering::Relaxed))
    }
}

/// A static behind a lock that each process has for itself: a child begins with a new one. What
/// its parent had is the parent's, and the lock may have been held when the process was forked.
pub(crate) struct PerProcess<T: 'static> {
    made: AtomicPtr<Made<T>>,
    new: fn() -> T,
}

struct Made<T> {
    generation: Generation,
    value: Mutex<T>,
}

impl<T: Send> PerProcess<T> {
    pub(crate) const fn new(new: fn() -> T) -> PerProcess<T> {
        PerProcess { made: AtomicPtr::new(ptr::null_mut()), new }
    }

    pub(crate) fn lock(&'static self) -> MutexGuard<'static, T> {
        let generation = Generation::current();
        loop {
            let made = self.made.load(Ordering::Acquire);
            // SAFETY: the pointer is null or from `Box::into_raw` below, published by the exchange
            // and never freed after it: one value for each process in a line of forks stays.
            let found: Option<&'static Made<T>> = unsafe { made.as_ref() };
            if let Some(made) = found.filter(|made| made.generation == generation) {
                return made.value.lock();
            }
            let value = Mutex::new((self.new)());
            let fresh = Box::into_raw(Box::new(Made { generation, value }));
            let exchange =
                self.made.compare_exchange(made, fresh, Ordering::AcqRel, Ordering::Relaxed);
            if exchange.is_err() {
                // SAFETY: it is from `Box::into_raw`, and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }
}

#[cfg(unix)]
fn watch() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler is async-signal-safe, as one that runs after a fork must be: it only
    // adds to an atomic. It is a function of this crate and stays loaded as long as the crate.
    // On failure (no memory) forks go unnoticed, which is what happens without the handler.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

#[cfg(not(unix))]
fn watch() {}
