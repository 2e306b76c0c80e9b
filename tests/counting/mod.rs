//! Counts what a thread allocates, byte for byte.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

// Counted per thread, so that the test harness allocating in its own threads at the same time
// cannot add to a measurement.
thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn grew(bytes: usize) {
    LIVE.set(LIVE.get() + bytes as i64);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

fn shrank(bytes: usize) {
    LIVE.set(LIVE.get() - bytes as i64);
}

struct Counting;

// SAFETY: every method passes its arguments unchanged to `System`, which upholds the contract of
// `GlobalAlloc`. The counters are plain cells with neither a destructor nor a lazy start, so
// touching them cannot allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        let pointer = unsafe { System.alloc(layout) };
        if !pointer.is_null() {
            grew(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        if !pointer.is_null() {
            grew(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) };
        shrank(layout.size());
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        let new_pointer = unsafe { System.realloc(pointer, layout, new_size) };
        if !new_pointer.is_null() {
            // A realloc that moves holds both buffers for a moment: count the new one first.
            grew(new_size);
            shrank(layout.size());
        }
        new_pointer
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One measurement at a time keeps the memory of the whole test process small.
static MEASURING: Mutex<()> = Mutex::new(());

/// The most bytes this thread held at once during `work`, above what it held before.
pub(crate) fn peak_of(work: impl FnOnce()) -> u64 {
    let _guard = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = LIVE.get();
    PEAK.set(before);
    work();
    u64::try_from(PEAK.get() - before).unwrap()
}
