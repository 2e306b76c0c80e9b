//! Bytes that are held, and values that hold them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::gate::Gate;
use crate::shared::Shared;

/// Bytes of a [`Budget`](crate::Budget) that are held until this is dropped.
///
/// A permit is [acquired](crate::Budget::acquire), or [kept](crate::Context::keep) by a job of what
/// it was admitted with. It may be sent to another thread, split and shrunk, and moved into whatever
/// owns the memory it stands for.
///
/// # Examples
///
/// ```
/// use admit::{Budget, MIB};
///
/// let budget = Budget::new(64 * MIB, 0)?;
/// let mut permit = budget.acquire(40 * MIB)?;
/// let part = permit.split(10 * MIB).expect("10 of 40 MiB");
/// assert_eq!((permit.bytes(), part.bytes()), (30 * MIB, 10 * MIB));
/// assert!(permit.split(31 * MIB).is_none());
/// drop(part);
/// assert_eq!(budget.ledger().held_bytes, 30 * MIB);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a permit that is dropped holds nothing"]
pub struct Permit {
    at: Place,
    number: u64,
    bytes: u64,
}

/// Where a permit is held. One that a job kept keeps its executor's place there.
#[derive(Clone)]
pub(crate) enum Place {
    Budget(Arc<Gate>),
    Executor(Arc<Shared>),
}

impl Place {
    fn gate(&self) -> &Gate {
        match self {
            Place::Budget(gate) => gate,
            Place::Executor(shared) => &shared.gate,
        }
    }
}

impl Permit {
    pub(crate) fn new(at: Place, number: u64, bytes: u64) -> Permit {
        Permit { at, number, bytes }
    }

    /// How many bytes this permit holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves `bytes` into a permit of their own. `None`, and no change, if there are not as
    /// many.
    pub fn split(&mut self, bytes: u64) -> Option<Permit> {
        let rest = self.bytes.checked_sub(bytes)?;
        let number = match self.gate() {
            Some(gate) => gate.change(|state| state.split_permit(self.number, bytes)),
            None => self.number,
        };
        self.bytes = rest;
        Some(Permit { at: self.at.clone(), number, bytes })
    }

    /// Returns what is held above `bytes`, at once. Never grows: with no more than `bytes` held
    /// nothing changes.
    pub fn shrink_to(&mut self, bytes: u64) {
        if let Some(excess) = self.bytes.checked_sub(bytes).filter(|excess| *excess > 0) {
            self.bytes = bytes;
            if let Some(gate) = self.gate() {
                gate.change(|state| state.shrink_permit(self.number, excess));
            }
        }
    }

    /// Ties the permit to what it stands for.
    pub fn with<T>(self, value: T) -> Lease<T> {
        Lease { value, permit: self }
    }

    /// `None` in a child process, where the parent holds the bytes.
    fn gate(&self) -> Option<&Gate> {
        Some(self.at.gate()).filter(|gate| !gate.was_forked())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(gate) = self.gate() {
            gate.change(|state| state.end_permit(self.number));
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A value and the bytes it takes, which are held as long as it is.
///
/// It gives access to the value as a box does, and can be moved into whatever comes to own the
/// value: a response body, a cache entry. The value is dropped before its bytes are returned.
///
/// # Examples
///
/// ```
/// use admit::{Budget, MIB};
///
/// let budget = Budget::new(64 * MIB, 0)?;
/// let mut lease = budget.acquire(40 * MIB)?.with(Vec::<u8>::with_capacity(10 << 20));
/// lease.push(7);
/// // The true size is known by now.
/// let bytes = lease.capacity() as u64;
/// lease.permit_mut().shrink_to(bytes);
/// assert_eq!(budget.ledger().held_bytes, 10 * MIB);
/// let (value, permit) = lease.into_parts();
/// assert_eq!((value, permit.bytes()), (vec![7], 10 * MIB));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a lease that is dropped holds nothing"]
pub struct Lease<T> {
    // In this order: the memory is gone before its bytes return.
    value: T,
    permit: Permit,
}

impl<T> Lease<T> {
    /// How many bytes are held for the value.
    pub fn bytes(&self) -> u64 {
        self.permit.bytes()
    }

    /// The permit, to shrink or split it.
    pub fn permit_mut(&mut self) -> &mut Permit {
        &mut self.permit
    }

    /// Makes another value of it, under the same permit.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Lease<U> {
        let Lease { value, permit } = self;
        permit.with(make(value))
    }

    /// The value and the permit, apart.
    pub fn into_parts(self) -> (T, Permit) {
        (self.value, self.permit)
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Lease<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// So that a lease on bytes can be sent as bytes.
impl<T: AsRef<U>, U: ?Sized> AsRef<U> for Lease<T> {
    fn as_ref(&self) -> &U {
        self.value.as_ref()
    }
}
