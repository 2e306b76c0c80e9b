//! How many workers there are to be: the rule, and what it makes of the facts.

use std::fmt;

use crate::cpu::CpuFacts;
use crate::fact::Fact;

/// The least that [`CpuPolicy::automatic`] decides on. Jobs that wait for something now and then
/// leave a processor to others, and one worker stalls everything behind one long job.
const FLOOR: usize = 4;
/// On Windows the stack of every thread is charged at once, touched or not.
const WINDOWS_CAP: usize = 8;

/// How a quota that is no whole number of processors becomes a number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rounding {
    /// 2.5 processors: 2 workers. None of them is ever held back by the quota.
    Down,
    /// 2.5 processors: 3 workers. The whole quota can be used.
    Up,
    /// 2.5 processors: 3 workers, 2.4 processors: 2.
    Nearest,
}

/// How many workers an executor has.
///
/// The number of workers is about processors. How many jobs fit into memory is the budget's
/// business, and no rule for the one can stand in for the other.
///
/// No rule here looks at CPU shares or weights (`cpu.shares`, `cpu.weight`). They say how
/// processors are divided while others want them too, not how many there are.
///
/// # Examples
///
/// ```
/// use admit::{CpuPolicy, Rounding};
///
/// assert_eq!(CpuPolicy::automatic(), CpuPolicy::default());
/// assert_eq!(CpuPolicy::fixed(3).to_string(), "fixed at 3");
/// assert_eq!(CpuPolicy::capped(4).to_string(), "at most 4");
/// assert_eq!(CpuPolicy::per_quota(Rounding::Up).to_string(), "quota rounded up");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuPolicy {
    rule: Rule,
    asks_environment: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Automatic,
    Capped(usize),
    Fixed(usize),
    PerQuota(Rounding),
}

impl CpuPolicy {
    /// One worker for each processor that is available, but at least four; the default.
    ///
    /// Lowered, but not below four, to half of the threads that may still be started
    /// ([`CpuFacts::threads_left`]): the other half is for the rest of the program. On Windows
    /// never more than eight.
    pub const fn automatic() -> CpuPolicy {
        CpuPolicy::of(Rule::Automatic)
    }

    /// One worker for each processor that is available, at most `most`; one if nobody knows how
    /// many there are.
    pub const fn capped(most: usize) -> CpuPolicy {
        CpuPolicy::of(Rule::Capped(most))
    }

    /// So many, whatever the machine is like. If not all of them can be started, the executor is
    /// not built.
    pub const fn fixed(workers: usize) -> CpuPolicy {
        CpuPolicy::of(Rule::Fixed(workers))
    }

    /// As many as the CPU quota of the process's control groups stands for, at least one and at
    /// most one for each processor. Without a quota, one for each processor that is available.
    ///
    /// A quota is CPU time in each period and no number of processors: more workers than that
    /// use it up early, and all of them then stand still until the next period begins.
    pub const fn per_quota(rounding: Rounding) -> CpuPolicy {
        CpuPolicy::of(Rule::PerQuota(rounding))
    }

    const fn of(rule: Rule) -> CpuPolicy {
        CpuPolicy { rule, asks_environment: false }
    }

    /// Lets the environment variable `ADMIT_WORKERS` ([`WORKERS_VARIABLE`](crate::WORKERS_VARIABLE))
    /// say otherwise, for the one who operates the program.
    ///
    /// Its value is a list of `program=workers`, separated by commas: `server=16`, or
    /// `server=16,thumbnails=4`. A program acts on the entry with its own name, the last part of
    /// the path that it was started by, and only if its parent is not the same program: so
    /// neither other programs that it starts nor copies of itself take the value for theirs.
    /// Whether the parent is the same can be seen on Linux only, and not through a shell in
    /// between, nor where the program's file was replaced meanwhile: a program that starts copies of
    /// itself like that has to remove the variable from their environment.
    ///
    /// A value that does not read like that is an error when the executor is built, also if
    /// another entry or an explicit number would have counted, and also if it is empty. The number
    /// is taken as it is, above what [`capped`](CpuPolicy::capped) would allow as well. A list that
    /// has no entry for this program shows in the [plan](crate::Plan). A [`fixed`](CpuPolicy::fixed)
    /// number is not changed by the environment.
    pub const fn or_environment(mut self) -> CpuPolicy {
        self.asks_environment = true;
        self
    }

    pub(crate) fn asks_environment(&self) -> bool {
        self.asks_environment
    }

    /// The number that was given, if one was.
    pub(crate) fn explicit(&self) -> Option<usize> {
        match self.rule {
            Rule::Fixed(workers) => Some(workers),
            Rule::Automatic | Rule::Capped(_) | Rule::PerQuota(_) => None,
        }
    }

    /// What the rule makes of the facts, and why.
    pub(crate) fn decide(&self, facts: &CpuFacts, is_windows: bool) -> (usize, WorkersSource) {
        let available = facts.available_parallelism;
        let (processors, source) = match available {
            Some(count) => (count, WorkersSource::AvailableParallelism),
            None => (1, WorkersSource::Unknown),
        };
        match self.rule {
            Rule::Fixed(workers) => (workers, WorkersSource::Explicit),
            Rule::Capped(most) if processors > most => (most, WorkersSource::Cap),
            Rule::Capped(_) => (processors, source),
            Rule::PerQuota(rounding) => match facts.quota {
                Fact::Limited { limit, .. } => {
                    let most = facts.allowed.or(available).unwrap_or(1);
                    (round(limit, rounding).clamp(1, most), WorkersSource::Quota)
                }
                Fact::Unlimited => (processors, source),
                Fact::Unread { .. } => (processors, WorkersSource::QuotaUnread),
            },
            Rule::Automatic => {
                let mut decided = (processors, source);
                if decided.0 < FLOOR {
                    decided = (FLOOR, WorkersSource::Floor);
                }
                if is_windows && decided.0 > WINDOWS_CAP {
                    decided = (WINDOWS_CAP, WorkersSource::WindowsCap);
                }
                if let Some(left) = facts.threads_left() {
                    let most = usize::try_from(left / 2).unwrap_or(usize::MAX).max(FLOOR);
                    if decided.0 > most {
                        decided = (most, WorkersSource::ThreadsLeft);
                    }
                }
                decided
            }
        }
    }
}

fn round(quota: f64, rounding: Rounding) -> usize {
    let rounded = match rounding {
        Rounding::Down => quota.floor(),
        Rounding::Up => quota.ceil(),
        Rounding::Nearest => quota.round(),
    };
    // Saturates, and a value that is no number is 0.
    rounded as usize
}

impl Default for CpuPolicy {
    fn default() -> Self {
        CpuPolicy::automatic()
    }
}

impl fmt::Display for CpuPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Rule::Automatic => f.write_str("automatic")?,
            Rule::Capped(most) => write!(f, "at most {most}")?,
            Rule::Fixed(workers) => write!(f, "fixed at {workers}")?,
            Rule::PerQuota(Rounding::Down) => f.write_str("quota rounded down")?,
            Rule::PerQuota(Rounding::Up) => f.write_str("quota rounded up")?,
            Rule::PerQuota(Rounding::Nearest) => f.write_str("quota rounded to the nearest")?,
        }
        if self.asks_environment { f.write_str(", or as the environment says") } else { Ok(()) }
    }
}

/// What decided on the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkersSource {
    /// The program gave the number.
    Explicit,
    /// The environment variable did.
    Environment,
    /// One for each processor that is available.
    AvailableParallelism,
    /// Nobody knows how many processors there are.
    Unknown,
    /// The least that the automatic rule has.
    Floor,
    /// The most that the automatic rule has on Windows.
    WindowsCap,
    /// The most that was asked for.
    Cap,
    /// The CPU quota.
    Quota,
    /// The CPU quota could not be read: one for each processor that is available.
    QuotaUnread,
    /// Half of the threads that may still be started.
    ThreadsLeft,
}

impl fmt::Display for WorkersSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkersSource::Explicit => "as given",
            WorkersSource::Environment => "environment variable ADMIT_WORKERS",
            WorkersSource::AvailableParallelism => "available processors",
            WorkersSource::Unknown => "number of processors is unknown",
            WorkersSource::Floor => "at least four",
            WorkersSource::WindowsCap => "at most eight on windows",
            WorkersSource::Cap => "the most that was asked for",
            WorkersSource::Quota => "cpu quota",
            WorkersSource::QuotaUnread => "available processors, since the cpu quota is unread",
            WorkersSource::ThreadsLeft => "half of the threads that may still be started",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(available: Option<usize>) -> CpuFacts {
        CpuFacts {
            available_parallelism: available,
            allowed: Some(64),
            quota: Fact::Unlimited,
            cgroup_threads: Fact::Unlimited,
            user_threads: Fact::Unlimited,
        }
    }

    fn limited<T>(limit: T) -> Fact<T> {
        Fact::Limited { limit, at: String::from("here") }
    }

    fn workers(policy: &CpuPolicy, facts: &CpuFacts) -> usize {
        policy.decide(facts, false).0
    }

    #[test]
    fn automatic_is_the_available_parallelism_but_at_least_four() {
        for (available, decided) in
            [(None, 4), (Some(1), 4), (Some(4), 4), (Some(5), 5), (Some(64), 64)]
        {
            assert_eq!(workers(&CpuPolicy::automatic(), &facts(available)), decided);
        }
    }

    #[test]
    fn automatic_has_at_most_eight_on_windows() {
        let decide = |n| CpuPolicy::automatic().decide(&facts(Some(n)), true);
        assert_eq!(decide(64), (8, WorkersSource::WindowsCap));
        assert_eq!(decide(7), (7, WorkersSource::AvailableParallelism));
        assert_eq!(decide(1), (4, WorkersSource::Floor));
    }

    #[test]
    fn automatic_takes_half_of_the_threads_left_but_at_least_four() {
        for (left, decided) in [(0, 4), (7, 4), (12, 6), (31, 15), (32, 16), (u64::MAX, 16)] {
            let in_cgroup = CpuFacts { cgroup_threads: limited(left), ..facts(Some(16)) };
            assert_eq!(workers(&CpuPolicy::automatic(), &in_cgroup), decided);
            let of_user = CpuFacts {
                cgroup_threads: limited(1000),
                user_threads: limited(left),
                ..facts(Some(16))
            };
            assert_eq!(workers(&CpuPolicy::automatic(), &of_user), decided);
        }
        // The limit on Windows holds as well.
        let both = CpuFacts { cgroup_threads: limited(10), ..facts(Some(16)) };
        assert_eq!(CpuPolicy::automatic().decide(&both, true), (5, WorkersSource::ThreadsLeft));
    }

    #[test]
    fn automatic_does_not_take_what_could_not_be_read_for_a_limit() {
        let unread = CpuFacts {
            cgroup_threads: Fact::Unread { why: String::from("hidden") },
            ..facts(Some(16))
        };
        assert_eq!(workers(&CpuPolicy::automatic(), &unread), 16);
    }

    #[test]
    fn capped_is_the_available_parallelism_or_one_and_never_above_the_cap() {
        for (available, decided) in [(None, 1), (Some(1), 1), (Some(3), 3), (Some(32), 4)] {
            assert_eq!(workers(&CpuPolicy::capped(4), &facts(available)), decided);
        }
    }

    #[test]
    fn a_quota_is_rounded_as_asked_and_is_at_least_one_and_at_most_the_processors() {
        let decide = |quota, rounding| {
            let facts = CpuFacts { quota: limited(quota), ..facts(Some(2)) };
            workers(&CpuPolicy::per_quota(rounding), &facts)
        };
        for (quota, down, up, nearest) in [
            (0.1, 1, 1, 1),
            (1.0, 1, 1, 1),
            (2.4, 2, 3, 2),
            (2.5, 2, 3, 3),
            (63.5, 63, 64, 64),
            (1e300, 64, 64, 64),
        ] {
            assert_eq!(decide(quota, Rounding::Down), down);
            assert_eq!(decide(quota, Rounding::Up), up);
            assert_eq!(decide(quota, Rounding::Nearest), nearest);
        }
    }

    #[test]
    fn without_a_quota_there_is_one_worker_for_each_available_processor() {
        let policy = CpuPolicy::per_quota(Rounding::Up);
        assert_eq!(workers(&policy, &facts(Some(3))), 3);
        assert_eq!(workers(&policy, &facts(None)), 1);
        let unread = Fact::Unread { why: String::from("hidden") };
        let decided = policy.decide(&CpuFacts { quota: unread, ..facts(Some(3)) }, false);
        assert_eq!(decided, (3, WorkersSource::QuotaUnread));
    }

    #[test]
    fn a_fixed_number_is_not_changed_by_anything() {
        let tight = CpuFacts { cgroup_threads: limited(0), quota: limited(0.5), ..facts(Some(2)) };
        let decided = CpuPolicy::fixed(100).decide(&tight, true);
        assert_eq!(decided, (100, WorkersSource::Explicit));
    }
}
