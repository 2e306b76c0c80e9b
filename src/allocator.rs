//! What is done about memory that the allocator keeps.

use std::fmt;
use std::sync::OnceLock;

use crate::sys;

/// What is done about memory that the allocator keeps after jobs have freed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allocator {
    /// It is glibc's. Large blocks go back to the system when they are freed, and what it keeps
    /// of small ones when it has become much.
    Bounded,
    /// Nothing, as was asked.
    LeftAlone,
    /// Nothing: the environment has settings for glibc's allocator in this variable.
    Environment(String),
    /// Nothing: the program's allocator is not glibc's.
    NotGlibc,
    /// Nothing: glibc's allocator refused.
    Refused,
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allocator::Bounded => f.write_str("glibc's, kept from holding on to freed memory"),
            Allocator::LeftAlone => f.write_str("left alone, as asked"),
            Allocator::Environment(name) => write!(f, "left alone, {name} is set"),
            Allocator::NotGlibc => f.write_str("left alone, it is not glibc's"),
            Allocator::Refused => f.write_str("glibc refused to be set"),
        }
    }
}

/// Settings that the one who runs the program gave to glibc's allocator.
const VARIABLES: [&str; 5] = [
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_MAX_",
    "MALLOC_ARENA_MAX",
];

static IS_GLIBC: OnceLock<bool> = OnceLock::new();
/// Whether glibc took the settings. They are made once in a process.
static IS_BOUNDED: OnceLock<bool> = OnceLock::new();

/// What would be done.
pub(crate) fn look(is_to_be_bounded: bool) -> Allocator {
    if !is_to_be_bounded {
        return Allocator::LeftAlone;
    }
    if let Some(name) = VARIABLES.into_iter().find(|name| std::env::var_os(name).is_some()) {
        return Allocator::Environment(name.to_owned());
    }
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    if tunables.to_string_lossy().contains("glibc.malloc.") {
        return Allocator::Environment(String::from("GLIBC_TUNABLES"));
    }
    // It takes a look through the whole heap to find out, and it does not change.
    if *IS_GLIBC.get_or_init(sys::allocator::is_glibc) {
        Allocator::Bounded
    } else {
        Allocator::NotGlibc
    }
}

/// Does it.
pub(crate) fn settle(is_to_be_bounded: bool) -> Allocator {
    let allocator = look(is_to_be_bounded);
    if allocator == Allocator::Bounded
        && !IS_BOUNDED.get_or_init(sys::allocator::return_large_blocks)
    {
        return Allocator::Refused;
    }
    allocator
}
