//! A clock that costs a few nanoseconds, for waits that are counted in milliseconds.

use std::time::Duration;

/// A moment on a clock that never goes back, to within one tick of the system's timer: 1 to
/// 10 ms on Linux, finer elsewhere.
///
/// Every job's wait is measured, so that reading the clock is part of every job's price. On
/// virtual machines the precise clock costs as much as two locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    nanos: u64,
}

impl Moment {
    /// After all that will be.
    pub(crate) const NEVER: Moment = Moment { nanos: u64::MAX };

    /// The beginning of the clock.
    pub(crate) const START: Moment = Moment { nanos: 0 };

    pub(crate) fn nanos_since(self, earlier: Moment) -> u64 {
        self.nanos.saturating_sub(earlier.nanos)
    }

    #[cfg(test)]
    pub(crate) fn at(nanos: u64) -> Moment {
        Moment { nanos }
    }

    /// So much later, or never.
    pub(crate) fn after(self, time: Duration) -> Moment {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Moment { nanos: self.nanos.saturating_add(nanos) }
    }

    pub(crate) fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }

    /// In a model time goes on by one nanosecond with each look at the clock.
    #[cfg(admit_shuttle)]
    pub(crate) fn now() -> Moment {
        use std::sync::atomic::{AtomicU64, Ordering};

        static LOOKS: AtomicU64 = AtomicU64::new(1);
        Moment { nanos: LOOKS.fetch_add(1, Ordering::Relaxed) }
    }

    #[cfg(all(not(admit_shuttle), any(target_os = "linux", target_os = "android")))]
    pub(crate) fn now() -> Moment {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec that lives through the call, which only writes
        // to it. The call cannot fail for a clock that every kernel has had since 2.6.32; were
        // it to, the moment would be the beginning of the clock.
        unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time);
        }
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment { nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos) }
    }

    #[cfg(all(not(admit_shuttle), not(any(target_os = "linux", target_os = "android"))))]
    pub(crate) fn now() -> Moment {
        use std::sync::OnceLock;
        use std::time::Instant;

        static START: OnceLock<Instant> = OnceLock::new();
        let nanos = START.get_or_init(Instant::now).elapsed().as_nanos();
        Moment { nanos: u64::try_from(nanos).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn the_clock_never_goes_back_and_does_go_on() {
        let start = Moment::now();
        let mut last = start;
        while last == start {
            let next = Moment::now();
            assert!(next >= last);
            last = next;
        }
        assert!(!last.since(start).is_zero());
        assert!(start.since(last).is_zero());
    }
}
