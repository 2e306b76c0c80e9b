//! glibc's allocator, if it is the program's.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::hint::black_box;

    /// Larger than any threshold that glibc can have (half of a heap of 64 MiB), so that such a
    /// block is always a mapping of its own.
    const PROBE_BYTES: usize = 40 << 20;

    /// Whether the program's allocations come from glibc. They do not where the program has
    /// another global allocator, or another one was loaded in glibc's place. `None`: there was no
    /// room to find out.
    pub(crate) fn is_glibc() -> Option<bool> {
        // Other threads may return mappings at the same time.
        for _ in 0..3 {
            let before = mapped_bytes();
            let mut block = Vec::<u8>::new();
            black_box(&mut block).try_reserve_exact(PROBE_BYTES).ok()?;
            // Both numbers are the low 32 bits of the true ones.
            let grown = mapped_bytes().wrapping_sub(before);
            drop(black_box(block));
            if (PROBE_BYTES..2 * PROBE_BYTES).contains(&(grown as usize)) {
                return Some(true);
            }
        }
        Some(false)
    }

    fn mapped_bytes() -> u32 {
        // SAFETY: the call takes nothing, and returns numbers by value. It takes glibc's own
        // locks and may be made from any thread.
        unsafe { libc::mallinfo() }.hblkhd as u32
    }

    /// Blocks from this size on become mappings of their own, and go back to the system when they
    /// are freed; the free end of an arena goes back when it is twice as large. Left alone, glibc
    /// raises both sizes, up to 32 and 64 MiB, with every mapping that is freed; from then on the
    /// arena of each worker keeps blocks that no job has.
    pub(crate) fn return_blocks_from(bytes: u64) -> bool {
        let (Ok(mapped), Ok(trimmed)) = (bytes.try_into(), (2 * bytes).try_into()) else {
            return false;
        };
        // SAFETY: the calls take numbers, lock what they change, and may be made from any thread
        // at any time. They return 0 for a value they do not take, and then change nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, mapped) == 1
                && libc::mallopt(libc::M_TRIM_THRESHOLD, trimmed) == 1
        }
    }

    /// Threads share so many arenas from now on. Left alone, each has one of its own, up to eight
    /// for each processor, and an arena is 64 MiB of mappings however little is in it.
    pub(crate) fn limit_arenas(most: u64) -> bool {
        let Ok(most) = most.try_into() else { return false };
        // SAFETY: as above.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, most) == 1 }
    }

    /// Returns the pages of all free blocks to the system, but for the free ends of arenas other
    /// than the first: glibc returns those only when something beside them is freed.
    pub(crate) fn return_free_blocks() {
        // SAFETY: the call takes a number, and glibc's own locks. Live blocks are not touched.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod imp {
    pub(crate) fn is_glibc() -> Option<bool> {
        Some(false)
    }

    pub(crate) fn return_blocks_from(_bytes: u64) -> bool {
        false
    }

    pub(crate) fn limit_arenas(_most: u64) -> bool {
        false
    }

    pub(crate) fn return_free_blocks() {}
}

pub(crate) use imp::*;
