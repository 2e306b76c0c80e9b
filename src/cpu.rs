//! What the machine says about processors and threads.

use std::fmt;
use std::path::Path;

use crate::fact::Fact;
use crate::sys::machine;

/// How many processors this process has, and how many threads it may start.
///
/// Weights and shares (`cpu.weight`, `cpu.shares`) are not among the facts: they say who goes
/// first when processors are short, and limit nobody.
///
/// # Examples
///
/// ```
/// use admit::{CpuFacts, Fact};
///
/// let cpu = CpuFacts::detect();
/// println!("{cpu}");
/// if let Fact::Limited { limit, at } = &cpu.quota {
///     assert!(*limit > 0.0);
///     println!("{limit:.2} processors, because of {at}");
/// }
/// ```
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
    /// How many more threads `RLIMIT_NPROC` allows the user. Threads of the user that cannot be
    /// seen from here, in other containers, are not counted.
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

    /// Reads the facts from a tree whose `proc` and mount points are below `root`, on Linux. Other
    /// systems have no files to read, and are asked as by [`detect`](CpuFacts::detect). The
    /// available parallelism is always this process's own.
    pub fn read_from(root: &Path) -> CpuFacts {
        CpuFacts {
            available_parallelism: std::thread::available_parallelism().map(usize::from).ok(),
            allowed: machine::allowed(root),
            quota: machine::quota(root),
            cgroup_threads: machine::group_threads(root),
            user_threads: machine::user_threads(root),
        }
    }
}

/// One line for each fact.
impl fmt::Display for CpuFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "available parallelism: ")?;
        number(f, self.available_parallelism)?;
        write!(f, "\nprocessors allowed: ")?;
        number(f, self.allowed)?;
        writeln!(f, "\nquota in processors: {}", self.quota)?;
        writeln!(f, "more threads in the control group: {}", self.cgroup_threads)?;
        write!(f, "more threads of the user: {}", self.user_threads)
    }
}

fn number(f: &mut fmt::Formatter<'_>, number: Option<usize>) -> fmt::Result {
    match number {
        Some(number) => write!(f, "{number}"),
        None => f.write_str("unknown"),
    }
}
