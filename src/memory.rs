//! What the machine says about the memory of this process.

use std::fmt;
use std::path::Path;

use crate::cost::Bytes;
use crate::fact::Fact;
use crate::sys::machine;

/// The limits on this process's memory, all in bytes.
///
/// # Limits of the method
///
/// Groups above a cgroup namespace cannot be seen, so that a container may have less than is found
/// here (v1 tells the least limit above all the same). The machine can run out before a group
/// does. A limit may change at any time, and the process may be moved: the facts are those of the
/// moment they were read.
///
/// On Windows the groups are job objects, of which only the innermost is asked; macOS has none.
/// On other systems nothing can be found out.
///
/// # Examples
///
/// ```
/// use admit::{Fact, MemoryFacts};
///
/// let memory = MemoryFacts::detect();
/// println!("{memory}");
/// match memory.least() {
///     Fact::Limited { limit, at } => println!("at most {limit} bytes, because of {at}"),
///     fact => println!("the limit: {fact}"),
/// }
/// // No machine is without a limit.
/// assert_ne!(memory.least(), Fact::Unlimited);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFacts {
    /// The least hard limit of the process's control group and all groups above it that can be
    /// seen: at it the kernel kills.
    pub cgroup_max: Fact<u64>,
    /// The least `memory.high` on the same way (cgroup v2): above it the kernel slows down.
    pub cgroup_high: Fact<u64>,
    /// The machine's memory.
    pub physical: Fact<u64>,
    /// `RLIMIT_AS`: the limit of what may be mapped, touched or not.
    pub address_space: Fact<u64>,
    /// `RLIMIT_DATA`: the limit of private writable mappings.
    pub data: Fact<u64>,
    /// What is mapped now.
    pub mapped_bytes: Option<u64>,
    /// What is resident now.
    pub resident_bytes: Option<u64>,
}

impl MemoryFacts {
    /// Asks the machine.
    pub fn detect() -> MemoryFacts {
        MemoryFacts::read_from(Path::new("/"))
    }

    /// Reads the facts from a tree whose `proc` and mount points are below `root`, on Linux. Other
    /// systems have no files to read, and are asked as by [`detect`](MemoryFacts::detect).
    pub fn read_from(root: &Path) -> MemoryFacts {
        let (cgroup_max, cgroup_high) = machine::group_memory(root);
        let (mapped_bytes, resident_bytes) = machine::in_use(root);
        MemoryFacts {
            cgroup_max,
            cgroup_high,
            physical: machine::physical(root),
            address_space: machine::address_space(root),
            data: machine::data(root),
            mapped_bytes,
            resident_bytes,
        }
    }

    /// The least of all limits, and which it is. Of the address space what was mapped when the
    /// facts were read is already spent.
    ///
    /// If one limit could not be read, the least is not known.
    pub fn least(&self) -> Fact<u64> {
        Fact::least([
            self.cgroup_max.clone(),
            self.cgroup_high.clone(),
            self.physical.clone(),
            self.unmapped(),
            self.data.clone(),
        ])
    }

    fn unmapped(&self) -> Fact<u64> {
        match (self.address_space.clone(), self.mapped_bytes) {
            (Fact::Limited { limit, at }, Some(mapped)) => Fact::Limited {
                limit: limit.saturating_sub(mapped),
                at: format!("{at}, less {} mapped", Bytes(mapped)),
            },
            (Fact::Limited { at, .. }, None) => {
                Fact::Unread { why: format!("{at} is set, and what is mapped could not be read") }
            }
            (fact, _) => fact,
        }
    }
}

/// One line for each fact.
impl fmt::Display for MemoryFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, fact) in [
            ("control group", &self.cgroup_max),
            ("control group, slowed down above", &self.cgroup_high),
            ("machine", &self.physical),
            ("address space", &self.address_space),
            ("data", &self.data),
        ] {
            writeln!(f, "{name}: {}", fact.clone().map(Bytes))?;
        }
        write!(f, "mapped: ")?;
        size(f, self.mapped_bytes)?;
        write!(f, "\nresident: ")?;
        size(f, self.resident_bytes)
    }
}

fn size(f: &mut fmt::Formatter<'_>, bytes: Option<u64>) -> fmt::Result {
    match bytes {
        Some(bytes) => write!(f, "{}", Bytes(bytes)),
        None => f.write_str("unknown"),
    }
}
