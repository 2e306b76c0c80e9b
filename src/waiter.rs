//! One thread, or one task, that waits to be told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{self, Poll, Waker};
use std::time::Instant;

use crate::effects::Verdict;
use crate::sync::{self, AtomicU8, Mutex, Ordering, SPIN_ROUNDS, Thread};

const WAITING: u8 = 0;
/// Waiting, and asleep, or a task that has left its waker: whoever tells must also wake.
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
    sleeper: Sleeper,
}

#[derive(Debug)]
enum Sleeper {
    Thread(Thread),
    /// Of a task, what it left when it was last polled. A waker is the user's: it is cloned, woken
    /// and dropped with no lock held, this one included.
    Task(Mutex<Option<Waker>>),
}

impl Waiter {
    /// For the calling thread, which alone may wait.
    pub(crate) fn new() -> Self {
        Waiter { state: AtomicU8::new(WAITING), sleeper: Sleeper::Thread(sync::current()) }
    }

    /// For whoever polls it.
    pub(crate) fn of_task() -> Self {
        Waiter { state: AtomicU8::new(WAITING), sleeper: Sleeper::Task(Mutex::new(None)) }
    }

    pub(crate) fn is_of_task(&self) -> bool {
        matches!(self.sleeper, Sleeper::Task(_))
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
            match &self.sleeper {
                Sleeper::Thread(thread) => thread.unpark(),
                Sleeper::Task(waker) => {
                    let waker = waker.lock().take();
                    // Whoever tells may be a worker, and has to survive.
                    let woken = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
                    std::mem::forget(woken);
                }
            }
        }
    }

    /// Leaves the task's waker to be woken, unless the verdict has come.
    pub(crate) fn poll(&self, context: &task::Context<'_>) -> Poll<Verdict> {
        let Sleeper::Task(place) = &self.sleeper else { unreachable!("a thread does not poll") };
        if let Some(verdict) = self.verdict() {
            return Poll::Ready(verdict);
        }
        let waker = context.waker().clone();
        let before = place.lock().replace(waker);
        drop(before);
        // The exchange fails if the waker is not the first, or the verdict has come. A verdict that
        // comes later finds PARKED, and takes this waker, or came before this waker was put there and
        // is seen now: in no order is it missed.
        let _ = self.state.compare_exchange(WAITING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        self.verdict().map_or(Poll::Pending, Poll::Ready)
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
