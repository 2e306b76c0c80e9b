//! One thread that waits to be told.

use std::time::Instant;

use crate::effects::Verdict;
use crate::sync::{self, AtomicU8, Ordering, SPIN_ROUNDS, Thread};

const WAITING: u8 = 0;
/// Waiting, and asleep: whoever tells must also wake.
const PARKED: u8 = 1;
const GO: u8 = 2;
const CLOSED: u8 = 3;
const NEVER_FITS: u8 = 4;
const STALLED: u8 = 5;
const EXPIRED: u8 = 6;

/// A place to be told a [`Verdict`], once. Its thread spins for a while before it sleeps, and
/// only a sleeping one costs the teller a system call.
#[derive(Debug)]
pub(crate) struct Waiter {
    state: AtomicU8,
    thread: Thread,
}

impl Waiter {
    /// For the calling thread, which alone may wait.
    pub(crate) fn new() -> Self {
        Waiter { state: AtomicU8::new(WAITING), thread: sync::current() }
    }

    /// Makes ready for the next wait, after a verdict was received.
    pub(crate) fn reset(&self) {
        self.state.store(WAITING, Ordering::Relaxed);
    }

    pub(crate) fn tell(&self, verdict: Verdict) {
        let told = match verdict {
            Verdict::Go => GO,
            Verdict::Closed => CLOSED,
            Verdict::NeverFits => NEVER_FITS,
            Verdict::Stalled => STALLED,
            Verdict::Expired => EXPIRED,
        };
        // Release: what the teller did before is seen by whoever learns of the verdict.
        if self.state.swap(told, Ordering::AcqRel) == PARKED {
            self.thread.unpark();
        }
    }

    /// Waits to be told. `None` if that has not happened by the deadline.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Option<Verdict> {
        self.spin().or_else(|| self.sleep(deadline))
    }

    fn verdict(&self) -> Option<Verdict> {
        match self.state.load(Ordering::Acquire) {
            GO => Some(Verdict::Go),
            CLOSED => Some(Verdict::Closed),
            NEVER_FITS => Some(Verdict::NeverFits),
            STALLED => Some(Verdict::Stalled),
            EXPIRED => Some(Verdict::Expired),
            _ => None,
        }
    }

    /// Waits without sleeping, for about as long as it takes to fall asleep and be woken.
    pub(crate) fn spin(&self) -> Option<Verdict> {
        for round in 0..SPIN_ROUNDS {
            if let Some(verdict) = self.verdict() {
                return Some(verdict);
            }
            sync::spin(round);
        }
        self.verdict()
    }

    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> Option<Verdict> {
        // The exchange fails only if the verdict has come. A verdict that comes after it finds
        // PARKED and unparks, and an unpark before the park makes that park return at once: in
        // no order is the verdict missed.
        let parked =
            self.state.compare_exchange(WAITING, PARKED, Ordering::Relaxed, Ordering::Relaxed);
        if parked.is_err() {
            return self.verdict();
        }
        loop {
            match deadline {
                None => sync::park(),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return self.stop_sleeping();
                    }
                    sync::park_timeout(left);
                    if cfg!(admit_shuttle) {
                        return self.stop_sleeping();
                    }
                }
            }
            if let Some(verdict) = self.verdict() {
                return Some(verdict);
            }
        }
    }

    fn stop_sleeping(&self) -> Option<Verdict> {
        let awake =
            self.state.compare_exchange(PARKED, WAITING, Ordering::Relaxed, Ordering::Relaxed);
        if awake.is_ok() { None } else { self.verdict() }
    }
}
