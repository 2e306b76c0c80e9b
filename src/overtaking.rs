//! How far later jobs may pass one that does not fit.

use std::time::Duration;

/// Whether jobs may be admitted before one that came earlier and does not fit.
///
/// The first job in line that does not fit leaves bytes unused that later ones could have. With
/// [`NONE`](Overtaking::NONE), the default, they wait behind it. Otherwise they pass it, up to a
/// bound, and from then on the bytes that return are kept for it. So each job is passed at most
/// `most` times by later jobs of its own lane, and while it is the first of all lanes, at most
/// `most` times by anybody.
///
/// It is looked for in the first 32 jobs of each of the first 32 lanes.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use admit::{Budget, Cost, Executor, MIB, Overtaking};
///
/// let budget = Budget::new(64 * MIB, 0)?;
/// budget.set_overtaking(Overtaking::at_most(1));
/// let executor = Executor::builder().workers(3).budget(budget).build()?;
/// let (release, wait) = channel::<()>();
/// let first = executor.submit(Cost::new(48 * MIB), move || wait.recv().is_err())?;
/// let large = executor.submit(Cost::new(64 * MIB), || ())?;
/// // The large one does not fit beside the first. One small one may pass it, and then no more.
/// executor.submit(Cost::new(MIB), || ())?.join()?;
/// let waits = executor.submit(Cost::new(MIB), || ())?;
/// assert_eq!(executor.stats().waiting_jobs, 2);
/// drop(release);
/// first.join()?;
/// large.join()?;
/// waits.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaking {
    most: u32,
    longest: Option<Duration>,
}

impl Overtaking {
    /// Strictly first in, first out.
    pub const NONE: Overtaking = Overtaking { most: 0, longest: None };

    /// Each job may be passed so many times.
    pub const fn at_most(jobs: u32) -> Overtaking {
        Overtaking { most: jobs, longest: None }
    }

    /// And for no longer than this, from the first time it is passed. Known to within a tick of the
    /// system's timer.
    pub const fn for_at_most(self, time: Duration) -> Overtaking {
        Overtaking { most: self.most, longest: Some(time) }
    }

    #[cfg(test)]
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Whether one that was passed so many times, and for so long, may be passed once more.
    pub(crate) fn allows(&self, passed: u32, for_time: Duration) -> bool {
        passed < self.most && self.longest.is_none_or(|longest| for_time < longest)
    }
}

impl Default for Overtaking {
    fn default() -> Self {
        Overtaking::NONE
    }
}
