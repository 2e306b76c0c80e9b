//! How much of a limit is never given out.

use std::fmt;

use crate::cost::Bytes;
use crate::error::BuildError;

/// What is kept back of a memory limit that was detected.
///
/// A budget counts what jobs declare. Everything else is paid from the reserve: the program
/// itself, its stacks and caches, what the allocator keeps of freed memory, results that wait
/// to be taken, the input of submissions that are blocked, and jobs that need more than they
/// said.
///
/// # Examples
///
/// ```
/// use admit::{MIB, Reserve};
///
/// assert_eq!(Reserve::half().of(384 * MIB)?, 192 * MIB);
/// let quarter = Reserve::fraction(0.25).at_least(128 * MIB);
/// assert_eq!(quarter.of(1024 * MIB)?, 256 * MIB);
/// assert_eq!(quarter.of(256 * MIB)?, 128 * MIB);
/// assert!(Reserve::fraction(1.5).of(MIB).is_err());
/// # Ok::<(), admit::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserve {
    fraction: f64,
    least_bytes: u64,
}

impl Reserve {
    /// Half of the limit; the default.
    ///
    /// Nobody knows what a program needs beside its jobs before it is measured, and too little
    /// in reserve is found out by being killed. Half is what the study of native pools that this
    /// crate goes back to worked with: eight jobs of 64 MiB in 1 GiB. Measure, then lower it.
    pub const fn half() -> Reserve {
        Reserve::fraction(0.5)
    }

    /// A part of the limit, between 0 and 1, rounded up to a whole byte. Anything else is an
    /// error when it is used.
    pub const fn fraction(fraction: f64) -> Reserve {
        Reserve { fraction, least_bytes: 0 }
    }

    /// So many bytes, whatever the limit. If the limit is lower, that is an error when the
    /// budget is made; if it becomes lower later, nothing is admitted.
    pub const fn bytes(bytes: u64) -> Reserve {
        Reserve { fraction: 0.0, least_bytes: bytes }
    }

    /// The larger of both: the reserve so far and so many bytes.
    pub const fn at_least(mut self, bytes: u64) -> Reserve {
        if bytes > self.least_bytes {
            self.least_bytes = bytes;
        }
        self
    }

    /// What is kept back of a limit of so many bytes.
    ///
    /// # Errors
    ///
    /// [`BuildError::ReserveFraction`] if the fraction is not between 0 and 1.
    pub fn of(&self, limit_bytes: u64) -> Result<u64, BuildError> {
        if !(0.0..=1.0).contains(&self.fraction) {
            return Err(BuildError::ReserveFraction { fraction: self.fraction });
        }
        let part = (limit_bytes as f64 * self.fraction).ceil() as u64;
        Ok(part.min(limit_bytes).max(self.least_bytes))
    }
}

impl Default for Reserve {
    fn default() -> Self {
        Reserve::half()
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fraction, self.least_bytes) {
            (0.0, bytes) => write!(f, "{}", Bytes(bytes)),
            (fraction, 0) => write!(f, "{fraction} of the limit"),
            (fraction, bytes) => {
                write!(f, "{fraction} of the limit, at least {}", Bytes(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fractions_that_are_none_are_errors() {
        for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                Reserve::fraction(fraction).of(1),
                Err(BuildError::ReserveFraction { .. })
            ));
        }
    }

    proptest! {
        #[test]
        fn a_reserve_is_the_larger_of_its_parts_and_a_fraction_never_above_the_limit(
            limit: u64, fraction in 0.0..=1.0, bytes: u64,
        ) {
            let part = Reserve::fraction(fraction).of(limit).unwrap();
            prop_assert!(part <= limit);
            prop_assert!(part as f64 >= limit as f64 * fraction * 0.999_999);
            let both = Reserve::fraction(fraction).at_least(bytes).of(limit).unwrap();
            prop_assert_eq!(both, part.max(bytes));
        }

        #[test]
        fn a_half_is_exact_up_to_a_byte(limit in 0..1_u64 << 52) {
            prop_assert_eq!(Reserve::half().of(limit).unwrap(), limit.div_ceil(2));
        }
    }
}
