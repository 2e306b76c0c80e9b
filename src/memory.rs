//! What the machine says about the memory of this process.

use std::path::Path;

use crate::fact::Fact;

/// The limits on this process's memory, all in bytes.
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

    /// The least of all limits.
    pub fn least(&self) -> Fact<u64> {
        Fact::least([self.cgroup_max.clone(), self.physical.clone()])
    }

    /// Reads the facts from a tree whose `proc` and mount points are below `root`.
    pub fn read_from(root: &Path) -> MemoryFacts {
        let _ = root;
        let unread = || Fact::Unread { why: String::from("not written yet") };
        MemoryFacts {
            cgroup_max: unread(),
            cgroup_high: unread(),
            physical: unread(),
            address_space: unread(),
            data: unread(),
            mapped_bytes: None,
            resident_bytes: None,
        }
    }
}
