//! The bytes of one budget, on one page: what there is, what is set aside, what is held.

use std::fmt;

use crate::cost::Bytes;

/// Where the bytes of a budget are. The parts add up to the capacity:
///
/// ```text
/// capacity = reserve + waiting limits + admissible
/// ```
///
/// as long as the capacity covers the first two; a capacity that was shrunk below them leaves
/// nothing admissible.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Executor, MIB};
///
/// let budget = Budget::new(384 * MIB, 96 * MIB)?;
/// let builder = Executor::builder().workers(1).budget(budget.clone());
/// let executor = builder.waiting_bytes(32 * MIB).build()?;
/// assert_eq!(
///     budget.ledger().to_string(),
///     "capacity 384 MiB = reserve 96 MiB + waiting 32 MiB + admissible 256 MiB (0 bytes held)",
/// );
/// drop(executor);
/// assert_eq!(budget.ledger().admissible_bytes(), 288 * MIB);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledger {
    /// All bytes of the budget.
    pub capacity_bytes: u64,
    /// Bytes that are never admitted: head-room for what nobody declares.
    pub reserve_bytes: u64,
    /// The sum of the limits of waiting input bytes of all executors on this budget.
    pub waiting_limit_bytes: u64,
    /// Bytes held by running jobs (working and input bytes) and by permits.
    pub held_bytes: u64,
    /// The most bytes that were ever held at once.
    pub peak_held_bytes: u64,
    /// Jobs that are admitted and have not ended, of all executors, also those of no bytes.
    pub jobs: u64,
    /// Permits that are held, acquired or kept by jobs, also those of no bytes.
    pub permits: u64,
}

impl Ledger {
    pub(crate) fn new(capacity_bytes: u64, reserve_bytes: u64) -> Self {
        Ledger {
            capacity_bytes,
            reserve_bytes,
            waiting_limit_bytes: 0,
            held_bytes: 0,
            peak_held_bytes: 0,
            jobs: 0,
            permits: 0,
        }
    }

    /// Bytes that may be held at once: the capacity less the reserve and the waiting limits.
    pub fn admissible_bytes(&self) -> u64 {
        self.capacity_bytes
            .saturating_sub(self.reserve_bytes)
            .saturating_sub(self.waiting_limit_bytes)
    }

    /// Admissible bytes that nobody holds. Zero while a shrunk budget is over-committed.
    pub fn free_bytes(&self) -> u64 {
        self.admissible_bytes().saturating_sub(self.held_bytes)
    }

    pub(crate) fn fits(&self, bytes: u64) -> bool {
        // Zero bytes fit even into an over-committed budget: a control job adds nothing to it.
        bytes == 0 || bytes <= self.free_bytes()
    }

    /// Whether nothing is in flight: not even a job, or a permit, of no bytes.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs == 0 && self.permits == 0
    }

    fn hold(&mut self, bytes: u64) {
        assert!(self.fits(bytes) || self.is_idle(), "I1: admitted bytes are admissible, or alone");
        self.held_bytes += bytes;
        self.peak_held_bytes = self.peak_held_bytes.max(self.held_bytes);
    }

    /// Part of what somebody holds returns.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.held_bytes =
            self.held_bytes.checked_sub(bytes).expect("I3: every permit returns its bytes once");
    }

    pub(crate) fn begin_job(&mut self, bytes: u64) {
        self.hold(bytes);
        self.jobs += 1;
    }

    /// A job holds more than before.
    pub(crate) fn grow_job(&mut self, bytes: u64) {
        assert!(self.fits(bytes), "I1: what a job grows by is admissible");
        self.hold(bytes);
    }

    pub(crate) fn end_job(&mut self, bytes: u64) {
        self.release(bytes);
        self.jobs -= 1;
    }

    pub(crate) fn begin_permit(&mut self, bytes: u64) {
        self.hold(bytes);
        self.permits += 1;
    }

    /// What somebody held, that one and a new permit hold.
    pub(crate) fn split_permit(&mut self) {
        self.permits += 1;
    }

    pub(crate) fn end_permit(&mut self, bytes: u64) {
        self.release(bytes);
        self.permits -= 1;
    }
}

/// `capacity 384 MiB = reserve 96 MiB + waiting 32 MiB + admissible 256 MiB (64 MiB held)`
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "capacity {} = reserve {} + waiting {} + admissible {} ({} held)",
            Bytes(self.capacity_bytes),
            Bytes(self.reserve_bytes),
            Bytes(self.waiting_limit_bytes),
            Bytes(self.admissible_bytes()),
            Bytes(self.held_bytes),
        )
    }
}
