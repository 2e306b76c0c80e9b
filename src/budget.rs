//! The bytes that executors and plain callers share.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::answer::Request;
use crate::detect::Origin;
use crate::effects::Verdict;
use crate::error::{AcquireError, BuildError};
use crate::gate::Gate;
use crate::ledger::Ledger;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;
use crate::permit::{Permit, Place};
use crate::shared;
use crate::waiter::Waiter;
use crate::waits::{self, Target};

/// A number of bytes, some of them in reserve, that jobs and permits hold parts of.
///
/// Executors built with clones of one budget share it, and so does any other code that
/// [acquires](Budget::acquire) permits from it: its lanes, and those who acquire together as if
/// they were one more lane, get the bytes in proportion to their
/// [shares](crate::LaneOptions::share). What never fits is refused at once.
///
/// A budget counts what is declared. It does not measure, and it is no bound on resident
/// memory: leave room for what nobody declares (the allocator's own, stacks, caches, the rest
/// of the program) in the reserve.
///
/// # Examples
///
/// ```
/// use admit::{AcquireError, Budget, MIB};
///
/// let budget = Budget::new(100 * MIB, 20 * MIB)?;
/// let mut permit = budget.try_acquire(60 * MIB)?;
/// assert!(matches!(budget.try_acquire(30 * MIB), Err(AcquireError::NotNow { .. })));
/// assert!(matches!(budget.try_acquire(81 * MIB), Err(AcquireError::NeverFits { .. })));
///
/// permit.shrink_to(50 * MIB);
/// let second = budget.try_acquire(30 * MIB)?;
/// assert_eq!(budget.ledger().free_bytes(), 0);
/// drop((permit, second));
/// assert_eq!(budget.ledger().held_bytes, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Budget {
    gate: Arc<Gate>,
    /// `None`: the capacity was given.
    origin: Option<Arc<Origin>>,
}

impl Budget {
    /// A budget of `capacity_bytes`, of which `reserve_bytes` are never given out.
    ///
    /// # Errors
    ///
    /// [`BuildError::ReserveAboveCapacity`].
    pub fn new(capacity_bytes: u64, reserve_bytes: u64) -> Result<Budget, BuildError> {
        if reserve_bytes > capacity_bytes {
            return Err(BuildError::ReserveAboveCapacity { reserve_bytes, capacity_bytes });
        }
        Ok(Budget::of(Arc::new(Gate::new(capacity_bytes, reserve_bytes)), None))
    }

    pub(crate) fn of(gate: Arc<Gate>, origin: Option<Arc<Origin>>) -> Budget {
        Budget { gate, origin }
    }

    pub(crate) fn with_origin(self, origin: Arc<Origin>) -> Budget {
        Budget { origin: Some(origin), ..self }
    }

    pub(crate) fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.as_ref()
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Where the bytes are now.
    pub fn ledger(&self) -> Ledger {
        self.gate.look(|state| *state.ledger())
    }

    /// Sets capacity and reserve, at once.
    ///
    /// Bytes that are held stay held, also above a shrunk capacity; nothing is admitted until
    /// enough of them have returned. Whoever waits for more than can now ever be admitted is
    /// refused: a blocked submission or acquirer with its error, a waiting job through its
    /// handle ([`JoinError::NeverFits`](crate::JoinError::NeverFits)).
    ///
    /// A capacity below the reserve and the executors' limits of waiting bytes is legal, since
    /// it may have been forced from outside; then nothing but jobs of no bytes is admitted.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let permit = budget.try_acquire(48 * MIB)?;
    /// budget.resize(32 * MIB, 0);
    /// assert_eq!(budget.ledger().held_bytes, 48 * MIB);
    /// assert!(budget.try_acquire(1).is_err());
    /// drop(permit);
    /// assert!(budget.try_acquire(1).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resize(&self, capacity_bytes: u64, reserve_bytes: u64) {
        self.gate.change(|state| state.resize(capacity_bytes, reserve_bytes));
    }

    /// Sets whether, and how far, jobs and acquirers on this budget may pass one that does not fit.
    /// [`Overtaking::NONE`] unless set.
    pub fn set_overtaking(&self, overtaking: Overtaking) {
        self.gate.change(|state| state.set_overtaking(overtaking));
    }

    /// Sets what is done with jobs and acquirers that need more than can be admitted beside others.
    /// [`Oversize::Refuse`] unless set. Who waits and would be refused from now on is ended, as by
    /// [`resize`](Budget::resize).
    pub fn set_oversize(&self, oversize: Oversize) {
        let is_detected = self.origin.is_some();
        self.gate.change(|state| state.set_oversize(oversize, is_detected));
    }

    /// Sets how long the budget may stand still; a minute, unless set, and `None` for ever.
    ///
    /// It stands still while no job runs on it, somebody waits for bytes that jobs
    /// [kept](crate::Context::keep), and none are returned. Then only the owners of
    /// [`Lease`](crate::Lease)s and permits that were kept can make room, and one of them may be the
    /// thread that waits, which nobody can see from here. So whoever has waited this
    /// long for bytes of a budget that has stood still this long is ended, first come first:
    /// a waiting job with [`JoinError::Stalled`](crate::JoinError::Stalled), a submission that
    /// waits for a place with [`Refused::Stalled`](crate::Refused::Stalled), an acquirer with
    /// [`AcquireError::Stalled`]. Seen by the threads that wait, four times a second.
    ///
    /// Bytes that were [acquired](Budget::acquire) are taken to be in use: who waits for those waits
    /// as long as their owner likes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use admit::{Budget, Context, Cost, Executor, JoinError, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// budget.set_stall_timeout(Some(Duration::from_millis(10)));
    /// let executor = Executor::builder().workers(1).budget(budget).build()?;
    /// let keep_all = || Context::current().expect("a job").keep(48 * MIB);
    /// let kept = executor.submit(Cost::new(48 * MIB), keep_all)?.join()??;
    /// // It cannot start while this very thread has the bytes.
    /// let second = executor.submit(Cost::new(32 * MIB), || ())?;
    /// assert!(matches!(second.join(), Err(JoinError::Stalled { .. })));
    /// drop(kept);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_stall_timeout(&self, timeout: Option<Duration>) {
        self.gate.change(|state| state.set_stall_timeout(timeout));
    }

    /// Waits for `bytes`, behind everybody who asked before, and holds them.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NeverFits`], also when the budget shrinks during the wait;
    /// [`AcquireError::OwnWorker`] when a job would have to wait for the budget it was admitted
    /// by; [`AcquireError::Circle`] when jobs of this budget wait for the calling one;
    /// [`AcquireError::Stalled`] when permits hold the bytes and the budget
    /// [stands still](Budget::set_stall_timeout).
    ///
    /// # Blocking
    ///
    /// Blocks until the bytes are there.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let permit = budget.acquire(48 * MIB)?;
    /// assert_eq!(budget.ledger().free_bytes(), 16 * MIB);
    /// drop(permit);
    /// assert_eq!(budget.ledger().free_bytes(), 64 * MIB);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire(&self, bytes: u64) -> Result<Permit, AcquireError> {
        if shared::is_callers_budget(Arc::as_ptr(&self.gate).addr()) {
            return self.try_acquire(bytes).map_err(|error| match error {
                AcquireError::NotNow { .. } => AcquireError::OwnWorker,
                other => other,
            });
        }
        self.acquire_until(bytes, None)
    }

    /// Holds `bytes` if they are free now and nobody waits for them.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotNow`] or [`AcquireError::NeverFits`], with the numbers, or
    /// [`AcquireError::Forked`].
    pub fn try_acquire(&self, bytes: u64) -> Result<Permit, AcquireError> {
        if self.gate.was_forked() {
            return Err(AcquireError::Forked);
        }
        let (request, ledger) = self.gate.change(|state| {
            let request = state.request(bytes);
            if let Request::Waiting { seq } = request {
                state.withdraw_request(seq);
            }
            (request, *state.ledger())
        });
        match request {
            Request::Granted { seq } => Ok(self.permit(seq, bytes)),
            Request::Waiting { .. } => Err(not_now(bytes, &ledger)),
            Request::NeverFits { admissible_bytes } => {
                Err(AcquireError::NeverFits { needed_bytes: bytes, admissible_bytes })
            }
        }
    }

    /// Waits at most `timeout` for `bytes`.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Budget::acquire), and [`AcquireError::NotNow`] when the time is over.
    /// A job may wait here: it does not wait for ever.
    ///
    /// # Blocking
    ///
    /// Blocks for at most `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{AcquireError, Budget, MIB};
    ///
    /// use std::time::Duration;
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let permit = budget.acquire(48 * MIB)?;
    /// let error = budget.acquire_timeout(32 * MIB, Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "budget has not enough free bytes now: 32 MiB needed, 16 MiB of 64 MiB free",
    /// );
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_timeout(&self, bytes: u64, timeout: Duration) -> Result<Permit, AcquireError> {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.acquire_until(bytes, Some(deadline)),
            None => self.acquire(bytes),
        }
    }

    fn acquire_until(&self, bytes: u64, deadline: Option<Instant>) -> Result<Permit, AcquireError> {
        if self.gate.was_forked() {
            return Err(AcquireError::Forked);
        }
        let mut waiter = None;
        let request = self.gate.change(|state| {
            let request = state.request(bytes);
            if let Request::Waiting { seq } = request {
                let told = waiter.insert(Arc::new(Waiter::new()));
                state.wait_for_bytes(seq, Arc::clone(told));
            }
            request
        });
        let seq = match request {
            Request::Granted { seq } => return Ok(self.permit(seq, bytes)),
            Request::Waiting { seq } => seq,
            Request::NeverFits { admissible_bytes } => {
                return Err(AcquireError::NeverFits { needed_bytes: bytes, admissible_bytes });
            }
        };
        let waiter = waiter.expect("it was made for this");
        let target = Target::Budget(Arc::as_ptr(&self.gate).addr());
        let waiting = waits::begin_until(deadline, target);
        let is_circle = waiting.is_err();
        let mut verdict = if is_circle { None } else { self.gate.wait(&waiter, deadline) };
        drop(waiting);
        if verdict.is_none() {
            if self.gate.change(|state| state.withdraw_request(seq)) {
                return Err(match is_circle {
                    true => AcquireError::Circle,
                    false => not_now(bytes, &self.ledger()),
                });
            }
            // It was decided just before, and the verdict is on its way.
            while verdict.is_none() {
                verdict = waiter.wait(None);
            }
        }
        match verdict.expect("waited for") {
            Verdict::Go => Ok(self.permit(seq, bytes)),
            Verdict::Stalled => {
                let ledger = self.ledger();
                let (free_bytes, Ledger { permits, held_bytes, .. }) =
                    (ledger.free_bytes(), ledger);
                Err(AcquireError::Stalled { needed_bytes: bytes, free_bytes, permits, held_bytes })
            }
            Verdict::Closed | Verdict::NeverFits | Verdict::Expired => {
                Err(AcquireError::NeverFits {
                    needed_bytes: bytes,
                    admissible_bytes: self.gate.look(|state| state.largest_request_bytes()),
                })
            }
        }
    }

    fn permit(&self, number: u64, bytes: u64) -> Permit {
        Permit::new(Place::Budget(Arc::clone(&self.gate)), number, bytes)
    }
}

fn not_now(needed_bytes: u64, ledger: &Ledger) -> AcquireError {
    AcquireError::NotNow {
        needed_bytes,
        free_bytes: ledger.free_bytes(),
        admissible_bytes: ledger.admissible_bytes(),
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = (!self.gate.was_forked()).then(|| self.ledger());
        f.debug_struct("Budget").field("ledger", &ledger).finish()
    }
}
