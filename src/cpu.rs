//! What the machine says about processors and threads.

use std::path::Path;

use crate::fact::Fact;

/// How many processors this process has, and how many threads it may start.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CpuFacts {
    /// What [`std::thread::available_parallelism`] says: affinity, and the quota rounded down.
    /// `None` if it does not know.
    pub available_parallelism: Option<usize>,
    /// The processors that the process may run on, whatever the quota.
    pub allowed: Option<usize>,
    /// The least CPU quota of the process's control group and those above it, in processors:
    /// 2.5 are 250 ms of CPU time in each 100 ms of wall time.
    pub quota: Fact<f64>,
    /// How many more threads the control groups allow: the least `pids.max - pids.current`.
    pub cgroup_threads: Fact<u64>,
    /// How many more threads `RLIMIT_NPROC` allows the user.
    pub user_threads: Fact<u64>,
}

impl CpuFacts {
    /// Asks the machine.
    pub fn detect() -> CpuFacts {
        CpuFacts::read_from(Path::new("/"))
    }

    /// How many more threads may be started, as far as it is known. A limit that could not be
    /// read may be lower; starting threads then fails.
    pub fn threads_left(&self) -> Option<u64> {
        self.cgroup_threads.limit().into_iter().chain(self.user_threads.limit()).min()
    }

    /// Reads the facts from a tree whose `proc` and mount points are below `root`. The available
    /// parallelism is always this process's own.
    pub fn read_from(root: &Path) -> CpuFacts {
        let _ = root;
        let unread = || Fact::Unread { why: String::from("not written yet") };
        CpuFacts {
            available_parallelism: std::thread::available_parallelism().map(usize::from).ok(),
            allowed: None,
            quota: Fact::Unread { why: String::from("not written yet") },
            cgroup_threads: unread(),
            user_threads: unread(),
        }
    }
}
