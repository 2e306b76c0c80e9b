//! What a job costs in memory.

use std::fmt;

/// Bytes in one kibibyte (2<sup>10</sup>).
///
/// ```
/// assert_eq!(admit::KIB, 1_024);
/// ```
pub const KIB: u64 = 1 << 10;

/// Bytes in one mebibyte (2<sup>20</sup>).
///
/// ```
/// assert_eq!(admit::MIB, 1_024 * admit::KIB);
/// ```
pub const MIB: u64 = 1 << 20;

/// Bytes in one gibibyte (2<sup>30</sup>).
///
/// ```
/// assert_eq!(admit::GIB, 1_024 * admit::MIB);
/// ```
pub const GIB: u64 = 1 << 30;

/// The memory one job needs, in bytes.
///
/// A cost has two parts. The working bytes are what the job allocates while it runs; they are
/// needed only from the moment it starts. The input bytes are what its captured input (a request
/// body, a password, an image) already holds; they are held while the job waits and still held
/// while it runs.
///
/// There is no default cost: a job without a stated cost could not be accounted for. A job that
/// needs next to no memory says so with [`Cost::new(0)`](Cost::new).
///
/// Sizes are `u64` rather than `usize` so that a cost above 4 GiB can be stated, and refused,
/// on a 32-bit target.
///
/// ```
/// use admit::{Cost, MIB};
///
/// let cost = Cost::new(64 * MIB).input(MIB);
///
/// assert_eq!(cost.working_bytes(), 64 * MIB);
/// assert_eq!(cost.input_bytes(), MIB);
/// assert_eq!(cost.total_bytes(), Some(65 * MIB));
/// assert_eq!(cost.to_string(), "64 MiB working, 1 MiB input");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    working_bytes: u64,
    input_bytes: u64,
}

impl Cost {
    /// A job that allocates at most `working_bytes` bytes while it runs and holds no input.
    ///
    /// Zero is allowed, for jobs such as control messages.
    ///
    /// ```
    /// use admit::{Cost, GIB};
    ///
    /// let cost = Cost::new(5 * GIB);
    /// assert_eq!(cost.working_bytes(), 5 * GIB);
    /// assert_eq!(cost.input_bytes(), 0);
    ///
    /// assert_eq!(Cost::new(0).total_bytes(), Some(0));
    /// ```
    #[must_use]
    pub const fn new(working_bytes: u64) -> Cost {
        Cost { working_bytes, input_bytes: 0 }
    }

    /// States how many bytes the job's captured input holds, already while the job waits.
    ///
    /// Replaces any earlier value. For a buffer that may have grown, count its capacity, not its
    /// length.
    ///
    /// ```
    /// use admit::{Cost, KIB};
    ///
    /// let body = vec![0_u8; 4_096];
    /// let cost = Cost::new(512 * KIB).input(body.capacity() as u64);
    /// assert_eq!(cost.input_bytes(), 4 * KIB);
    /// ```
    #[must_use]
    pub const fn input(self, input_bytes: u64) -> Cost {
        Cost { working_bytes: self.working_bytes, input_bytes }
    }

    /// Bytes the job allocates while it runs, without its input.
    ///
    /// ```
    /// assert_eq!(admit::Cost::new(7).input(3).working_bytes(), 7);
    /// ```
    #[must_use]
    pub const fn working_bytes(self) -> u64 {
        self.working_bytes
    }

    /// Bytes the job's captured input holds, while it waits and while it runs.
    ///
    /// ```
    /// assert_eq!(admit::Cost::new(7).input(3).input_bytes(), 3);
    /// ```
    #[must_use]
    pub const fn input_bytes(self) -> u64 {
        self.input_bytes
    }

    /// Bytes charged when the job is admitted: working and input bytes together, because a
    /// running job still holds its input.
    ///
    /// `None` when the sum does not fit in a `u64`. Such a job fits no budget.
    ///
    /// ```
    /// use admit::Cost;
    ///
    /// assert_eq!(Cost::new(7).input(3).total_bytes(), Some(10));
    /// assert_eq!(Cost::new(u64::MAX).input(1).total_bytes(), None);
    /// ```
    #[must_use]
    pub const fn total_bytes(self) -> Option<u64> {
        self.working_bytes.checked_add(self.input_bytes)
    }
}

/// Prints both parts with binary units.
///
/// ```
/// use admit::{Cost, MIB};
///
/// assert_eq!(Cost::new(3 * MIB / 2).to_string(), "1.5 MiB working, 0 bytes input");
/// ```
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} working, {} input", Bytes(self.working_bytes), Bytes(self.input_bytes))
    }
}

/// A number of bytes that prints with the largest binary unit that does not mislead.
///
/// A multiple of the unit prints as a whole number. Anything else prints with one decimal,
/// rounded to the nearest tenth. A value whose tenth would be 0 moves on to a smaller unit: one
/// byte over 64 MiB must not read as the 64 MiB limit it has just passed.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
            if self.0 < unit {
                continue;
            }
            let whole = self.0 / unit;
            let rest = self.0 % unit;
            if rest == 0 {
                return write!(f, "{whole} {name}");
            }
            let tenths = (rest * 10 + unit / 2) / unit;
            if (1..=9).contains(&tenths) {
                return write!(f, "{whole}.{tenths} {name}");
            }
        }
        if self.0 == 1 { write!(f, "1 byte") } else { write!(f, "{} bytes", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_a_unit_print_as_whole_numbers() {
        assert_eq!(Bytes(KIB).to_string(), "1 KiB");
        assert_eq!(Bytes(64 * MIB).to_string(), "64 MiB");
        assert_eq!(Bytes(5 * GIB).to_string(), "5 GiB");
        assert_eq!(Bytes(2048 * GIB).to_string(), "2048 GiB");
    }

    #[test]
    fn values_below_one_kibibyte_print_as_bytes() {
        assert_eq!(Bytes(0).to_string(), "0 bytes");
        assert_eq!(Bytes(1).to_string(), "1 byte");
        assert_eq!(Bytes(100).to_string(), "100 bytes");
        assert_eq!(Bytes(1023).to_string(), "1023 bytes");
    }

    #[test]
    fn values_between_multiples_print_with_one_decimal() {
        assert_eq!(Bytes(GIB + GIB / 2).to_string(), "1.5 GiB");
        assert_eq!(Bytes(1300 * MIB).to_string(), "1.3 GiB");
        assert_eq!(Bytes(KIB + 512).to_string(), "1.5 KiB");
    }

    #[test]
    fn values_just_off_a_multiple_never_print_as_that_multiple() {
        assert_eq!(Bytes(64 * MIB + 1).to_string(), "67108865 bytes");
        assert_eq!(Bytes(64 * MIB - 1).to_string(), "67108863 bytes");
        assert_eq!(Bytes(64 * MIB + KIB).to_string(), "65537 KiB");
        assert_eq!(Bytes(2 * GIB - 20 * MIB).to_string(), "2028 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "18446744073709551615 bytes");
    }

    #[test]
    fn a_whole_number_in_the_text_is_always_exact() {
        for power in 0..64 {
            for step in [-700_000_i128, -1025, -513, -1, 0, 1, 513, 1025, 700_000] {
                let Ok(value) = u64::try_from((1_i128 << power) + step) else {
                    continue;
                };
                let text = Bytes(value).to_string();
                let (number, unit) = text.split_once(' ').unwrap();
                let unit = match unit {
                    "GiB" => GIB,
                    "MiB" => MIB,
                    "KiB" => KIB,
                    _ => 1,
                };
                match number.split_once('.') {
                    None => assert_eq!(number.parse::<u64>().unwrap() * unit, value, "{text}"),
                    Some((_, tenth)) => assert_ne!(tenth, "0", "{value} printed as {text}"),
                }
            }
        }
    }

    #[test]
    fn total_is_none_exactly_when_the_sum_overflows() {
        assert_eq!(Cost::new(u64::MAX).total_bytes(), Some(u64::MAX));
        assert_eq!(Cost::new(u64::MAX - 1).input(1).total_bytes(), Some(u64::MAX));
        assert_eq!(Cost::new(u64::MAX).input(1).total_bytes(), None);
        assert_eq!(Cost::new(1).input(u64::MAX).total_bytes(), None);
    }
}
