//! What a job declares.
use std::fmt;
/// One kibibyte: 1024 bytes.
pub const KIB: u64 = 1024;
/// One mebibyte.
pub const MIB: u64 = 1024 * KIB;
/// One gibibyte.
pub const GIB: u64 = 1024 * MIB;
/// The bytes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    working_bytes: u64,
    input_bytes: u64,
}
impl Cost {
    /// New.
    pub const fn new(working_bytes: u64) -> Cost {
        Cost { working_bytes, input_bytes: 0 }
    }
    /// Input.
    pub const fn input(self, input_bytes: u64) -> Cost {
        Cost { input_bytes, ..self }
    }
    /// Working.
    pub const fn working_bytes(self) -> u64 {
        self.working_bytes
    }
    /// Input.
    pub const fn input_bytes(self) -> u64 {
        self.input_bytes
    }
    /// Total.
    pub const fn total_bytes(self) -> Option<u64> {
        self.working_bytes.checked_add(self.input_bytes)
    }
}
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} working, {} input", Bytes(self.working_bytes), Bytes(self.input_bytes))
    }
}
pub(crate) struct Bytes(pub(crate) u64);
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= MIB && self.0 % MIB == 0 {
            write!(f, "{} MiB", self.0 / MIB)
        } else {
            write!(f, "{} bytes", self.0)
        }
    }
}
