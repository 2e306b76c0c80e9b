//! What stays resident after jobs have ended, and when the allocator is told to return it.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::{allocator, resident};

/// Jobs below this size are not looked after: what one of them leaves behind is little, and
/// asking what is resident would be a large part of its cost.
pub(crate) const LEAST_JOB_BYTES: u64 = 1 << 20;
const LEAST_ALLOWANCE_BYTES: u64 = 8 << 20;
/// glibc's own choice before it has seen a large block freed.
const LEAST_RETURNED_BYTES: u64 = 128 << 10;
/// Beyond this, the benchmark sees no difference: a system call and fresh pages are little beside
/// what a job does with so large a block.
const MOST_RETURNED_BYTES: u64 = 8 << 20;

/// How much may be retained: a quarter of the reserve. It is there for that, among other things.
fn allowance_bytes(reserve_bytes: u64) -> u64 {
    (reserve_bytes / 4).max(LEAST_ALLOWANCE_BYTES)
}

/// From which size on freed blocks are to go back to the system.
///
/// The arena of each worker keeps a free end of twice that, which nobody else can return. The ends
/// of all arenas together are to be within the allowance.
pub(crate) fn returned_from_bytes(reserve_bytes: u64, workers: usize) -> u64 {
    let share = allowance_bytes(reserve_bytes) / (workers.max(1) as u64);
    (share / 2).clamp(LEAST_RETURNED_BYTES, MOST_RETURNED_BYTES)
}

/// Resident memory beyond what is explained, in bytes. The three are read at moments of their
/// own, so that any of them may be ahead.
pub(crate) fn retained_bytes(resident: u64, baseline: u64, explained: u64) -> u64 {
    resident.saturating_sub(baseline).saturating_sub(explained)
}

/// Has the allocator return freed blocks when too much is retained.
///
/// How much it keeps, only the system knows, and it does not say why: retained memory may also be
/// results, or the program's own. So a return is asked for when what is retained has grown by the
/// allowance since it was least, or since the last return. The pages of that growth have cost
/// more to fill than it costs to return them, whatever they were.
#[derive(Debug)]
pub(crate) struct Retention {
    baseline_bytes: u64,
    allowance_bytes: u64,
    /// What may be retained before the next return.
    bound_bytes: AtomicU64,
    is_returning: AtomicBool,
}

impl Retention {
    pub(crate) fn new(baseline_bytes: u64, reserve_bytes: u64) -> Self {
        let allowance_bytes = allowance_bytes(reserve_bytes);
        Retention {
            baseline_bytes,
            allowance_bytes,
            bound_bytes: AtomicU64::new(allowance_bytes),
            is_returning: AtomicBool::new(false),
        }
    }

    /// To be called when a job's memory is free and before its bytes are: `explained_bytes` are
    /// held by the others. So whoever is admitted for these bytes finds them.
    pub(crate) fn check(&self, explained_bytes: u64) {
        if self.is_returning.swap(true, Ordering::Acquire) {
            return;
        }
        if let Some(retained) = self.retained(explained_bytes)
            && self.is_too_much(retained)
        {
            allocator::return_free_blocks();
            let rest = self.retained(explained_bytes).unwrap_or(retained);
            self.bound_bytes.store(rest + self.allowance_bytes, Ordering::Relaxed);
        }
        self.is_returning.store(false, Ordering::Release);
    }

    fn retained(&self, explained_bytes: u64) -> Option<u64> {
        let resident = resident::resident_bytes()?;
        Some(retained_bytes(resident, self.baseline_bytes, explained_bytes))
    }

    fn is_too_much(&self, retained: u64) -> bool {
        let lower = retained + self.allowance_bytes;
        let bound = self.bound_bytes.load(Ordering::Relaxed);
        if lower < bound {
            self.bound_bytes.store(lower, Ordering::Relaxed);
        }
        retained > bound
    }
}

#[cfg(all(test, not(admit_shuttle)))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn returned(retention: &Retention, rest: u64) {
        retention.bound_bytes.store(rest + retention.allowance_bytes, Ordering::Relaxed);
    }

    #[test]
    fn a_return_is_asked_for_when_retained_memory_has_grown_by_the_allowance() {
        let retention = Retention::new(0, 64 * MIB);
        assert!(!retention.is_too_much(0));
        assert!(!retention.is_too_much(16 * MIB));
        assert!(retention.is_too_much(16 * MIB + 1));
    }

    #[test]
    fn what_could_not_be_returned_is_not_asked_for_again_before_it_has_grown() {
        let retention = Retention::new(0, 64 * MIB);
        assert!(retention.is_too_much(100 * MIB));
        returned(&retention, 100 * MIB);
        assert!(!retention.is_too_much(100 * MIB));
        assert!(!retention.is_too_much(116 * MIB));
        assert!(retention.is_too_much(117 * MIB));
    }

    #[test]
    fn memory_that_went_away_by_itself_is_watched_anew() {
        let retention = Retention::new(0, 64 * MIB);
        returned(&retention, 100 * MIB);
        assert!(!retention.is_too_much(10 * MIB));
        assert!(!retention.is_too_much(26 * MIB));
        assert!(retention.is_too_much(27 * MIB));
    }

    #[test]
    fn a_small_reserve_allows_something_nevertheless() {
        let retention = Retention::new(0, 0);
        assert!(!retention.is_too_much(8 * MIB));
        assert!(retention.is_too_much(9 * MIB));
    }

    #[test]
    fn the_free_ends_of_all_arenas_are_within_the_allowance() {
        for (reserve, workers) in [(96, 16), (192, 4), (64, 3), (1 << 20, 64)] {
            let ends = 2 * returned_from_bytes(reserve * MIB, workers) * workers as u64;
            assert!(ends <= allowance_bytes(reserve * MIB), "{reserve} MiB, {workers} workers");
        }
        assert_eq!(returned_from_bytes(96 * MIB, 16), 768 << 10);
        assert_eq!(returned_from_bytes(u64::MAX, 1), 8 * MIB);
        assert_eq!(returned_from_bytes(0, usize::MAX), 128 << 10);
    }

    #[test]
    fn readings_that_do_not_fit_together_are_no_retained_memory() {
        assert_eq!(retained_bytes(10, 20, 5), 0);
        assert_eq!(retained_bytes(30, 20, 50), 0);
        assert_eq!(retained_bytes(30, 20, 4), 6);
    }
}
