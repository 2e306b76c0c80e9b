//! Whose allocator the process on trial has: chosen when it starts, so that one program tries all.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use mimalloc::MiMalloc;
use tikv_jemallocator::Jemalloc;

use super::trial::How;

const VARIABLE: &str = "ADMIT_OOM_ALLOCATOR";

pub(crate) fn name(how: How) -> &'static str {
    match how {
        How::Jemalloc | How::JemallocPurging => "jemalloc",
        How::Mimalloc | How::MimallocPurging => "mimalloc",
        _ => "system",
    }
}

pub(crate) fn is_another(how: How) -> bool {
    name(how) != "system"
}

/// What the allocators read from the environment.
const SETTINGS: [&str; 5] = [
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "GLIBC_TUNABLES",
    "_RJEM_MALLOC_CONF",
    "MIMALLOC_PURGE_DELAY",
];

/// Nothing that the environment of the harness says, and what a variant is about.
pub(crate) fn set(command: &mut Command, how: How) {
    for variable in SETTINGS {
        command.env_remove(variable);
    }
    match how {
        How::JemallocPurging => {
            command.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        }
        How::MimallocPurging => command.env("MIMALLOC_PURGE_DELAY", "0"),
        _ => command,
    };
    command.env(VARIABLE, name(how));
}

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const JEMALLOC: u8 = 2;
const MIMALLOC: u8 = 3;

struct Chosen(AtomicU8);

#[global_allocator]
static CHOSEN: Chosen = Chosen(AtomicU8::new(UNKNOWN));

impl Chosen {
    fn get(&self) -> &dyn GlobalAlloc {
        let mut chosen = self.0.load(Ordering::Relaxed);
        if chosen == UNKNOWN {
            chosen = choose();
            self.0.store(chosen, Ordering::Relaxed);
        }
        match chosen {
            JEMALLOC => &Jemalloc,
            MIMALLOC => &MiMalloc,
            _ => &System,
        }
    }
}

/// The standard library would have to allocate for this.
fn choose() -> u8 {
    const NAME: &[u8] = b"ADMIT_OOM_ALLOCATOR\0";
    // SAFETY: the name ends with a null. At the first allocation there is one thread, so that
    // nobody changes the environment while the value is looked at.
    let first = unsafe {
        let value = libc::getenv(NAME.as_ptr().cast());
        if value.is_null() { 0 } else { *value.cast::<u8>() }
    };
    match first {
        b'j' => JEMALLOC,
        b'm' => MIMALLOC,
        _ => SYSTEM,
    }
}

// SAFETY: every call goes to an allocator that keeps the contract, and to the same one in the
// whole life of the process: the environment is looked at before the first block is given out.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { self.get().alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the block is from the same allocator.
        unsafe { self.get().dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { self.get().alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract, and the block is from the same allocator.
        unsafe { self.get().realloc(block, layout, bytes) }
    }
}
