//! What is done about memory that the allocator keeps.

use std::fmt;

use crate::cost::Bytes;
use crate::sys::{self, fork::PerProcess};

/// What is done about memory that the allocator keeps after jobs have freed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allocator {
    /// It is glibc's. Large blocks go back to the system when they are freed, and what it keeps
    /// of small ones when it has become much.
    Bounded {
        /// What a large block is. It is the least that any executor of the process has asked for:
        /// an eighth of its reserve, divided by its workers, between 128 KiB and 8 MiB.
        returned_from_bytes: u64,
        /// How many arenas there are at most, where what may be mapped is limited (`RLIMIT_AS`):
        /// as many as a quarter of the reserve has room for, at 64 MiB each, and at least one.
        /// `None`: glibc decides.
        most_arenas: Option<u64>,
    },
    /// Nothing, as was asked.
    LeftAlone,
    /// Nothing: the environment has settings for glibc's allocator in this variable.
    Environment(String),
    /// Nothing: the program's allocator is not glibc's.
    NotGlibc,
    /// Nothing: there was no room for the 40 MiB that it takes to find out whose it is.
    Unknown,
    /// Nothing: glibc's allocator refused.
    Refused,
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allocator::Bounded { returned_from_bytes, most_arenas } => {
                write!(f, "glibc's, returns blocks of {} or more", Bytes(*returned_from_bytes))?;
                match most_arenas {
                    Some(1) => write!(f, ", in one arena"),
                    Some(most) => write!(f, ", in at most {most} arenas"),
                    None => Ok(()),
                }
            }
            Allocator::LeftAlone => f.write_str("left alone, as asked"),
            Allocator::Environment(name) => write!(f, "left alone, {name} is set"),
            Allocator::NotGlibc => f.write_str("left alone, it is not glibc's"),
            Allocator::Unknown => f.write_str("left alone, no room to find out whose it is"),
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

/// Once it is known.
static IS_GLIBC: PerProcess<Option<bool>> = PerProcess::new(|| None);
/// What glibc was told: by the executor that asked for least, each of the two.
static TOLD: PerProcess<Bounds> =
    PerProcess::new(|| Bounds { returned_from_bytes: u64::MAX, most_arenas: None });

/// How glibc's allocator is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) returned_from_bytes: u64,
    pub(crate) most_arenas: Option<u64>,
}

impl Bounds {
    fn least(self, other: Bounds) -> Bounds {
        let most_arenas = [self.most_arenas, other.most_arenas];
        Bounds {
            returned_from_bytes: self.returned_from_bytes.min(other.returned_from_bytes),
            most_arenas: most_arenas.into_iter().flatten().min(),
        }
    }
}

/// What would be done for an executor that wants these bounds.
pub(crate) fn look(wanted: Option<Bounds>) -> Allocator {
    let Some(wanted) = wanted else { return Allocator::LeftAlone };
    if let Some(name) = VARIABLES.into_iter().find(|name| std::env::var_os(name).is_some()) {
        return Allocator::Environment(name.to_owned());
    }
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    if tunables.to_string_lossy().contains("glibc.malloc.") {
        return Allocator::Environment(String::from("GLIBC_TUNABLES"));
    }
    // It takes a look through the whole heap to find out, and it does not change.
    let mut is_glibc = IS_GLIBC.lock();
    *is_glibc = is_glibc.or_else(sys::allocator::is_glibc);
    match *is_glibc {
        Some(true) => {
            let Bounds { returned_from_bytes, most_arenas } = wanted.least(*TOLD.lock());
            Allocator::Bounded { returned_from_bytes, most_arenas }
        }
        Some(false) => Allocator::NotGlibc,
        None => Allocator::Unknown,
    }
}

/// Does it.
pub(crate) fn settle(planned: Allocator) -> Allocator {
    let Allocator::Bounded { returned_from_bytes, most_arenas } = planned else { return planned };
    let mut told = TOLD.lock();
    let bounds = Bounds { returned_from_bytes, most_arenas }.least(*told);
    if bounds != *told {
        let is_done = sys::allocator::return_blocks_from(bounds.returned_from_bytes)
            && bounds.most_arenas.is_none_or(sys::allocator::limit_arenas);
        if !is_done {
            return Allocator::Refused;
        }
        *told = bounds;
    }
    let Bounds { returned_from_bytes, most_arenas } = bounds;
    Allocator::Bounded { returned_from_bytes, most_arenas }
}
