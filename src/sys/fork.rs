//! Whether the process was forked. A fork copies the memory and one thread: in the child an
//! executor's workers do not exist, and its lock may be held by a thread that does not either.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

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
