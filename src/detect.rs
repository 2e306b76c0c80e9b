//! Budgets that find their own limit, and follow it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::budget::Budget;
use crate::error::{BuildError, DetectError};
use crate::fact::Fact;
use crate::gate::Gate;
use crate::memory::MemoryFacts;
use crate::reserve::Reserve;
use crate::sys::fork::PerProcess;

/// Where a budget's capacity was found, and how it is found again.
#[derive(Debug)]
pub(crate) struct Origin {
    root: PathBuf,
    reserve: Reserve,
    /// What was mapped at first. Later readings have the jobs' own mappings in them, which must
    /// not count against the capacity that the jobs are given.
    mapped_bytes: Option<u64>,
    readings: AtomicU64,
    last: parking_lot::Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    reading: u64,
    facts: MemoryFacts,
    /// The limit that holds: the last one that was found.
    source: String,
}

/// A capacity, its reserve, and the limit that decided.
struct Found {
    capacity_bytes: u64,
    reserve_bytes: u64,
    source: String,
}

impl Origin {
    pub(crate) fn reserve(&self) -> Reserve {
        self.reserve
    }

    pub(crate) fn facts(&self) -> MemoryFacts {
        self.last.lock().facts.clone()
    }

    pub(crate) fn source(&self) -> String {
        self.last.lock().source.clone()
    }
}

/// What the facts come to.
fn find(facts: &MemoryFacts, reserve: Reserve) -> Result<Found, BuildError> {
    let why = match facts.least() {
        Fact::Limited { limit, at } => {
            let reserve_bytes = reserve.of(limit)?;
            return Ok(Found { capacity_bytes: limit, reserve_bytes, source: at });
        }
        Fact::Unlimited => String::from("nothing says how much memory there is"),
        Fact::Unread { why } => why,
    };
    Err(DetectError::Unread { why }.into())
}

struct Shared {
    gate: Weak<Gate>,
    origin: Arc<Origin>,
}

static OF_PROCESS: PerProcess<Option<Shared>> = PerProcess::new(|| None);

impl Budget {
    /// The budget of this process: its memory limit, half of it in reserve ([`Reserve::half`]).
    ///
    /// The limit is the least of those that hold for the process ([`MemoryFacts`]). There is one
    /// such budget in a process: as long as anybody has it, it is what everybody gets here, so
    /// that two parts of a program that know nothing of each other do not both give out the same
    /// half. An executor that is built without a budget uses it too.
    ///
    /// # Errors
    ///
    /// [`BuildError::Detect`] if a limit could not be read. It may be there, and is not taken for
    /// none; look at [`MemoryFacts::detect`], and give the budget a capacity with
    /// [`Budget::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::Budget;
    ///
    /// let budget = Budget::detect()?;
    /// let ledger = budget.ledger();
    /// assert_eq!(ledger.reserve_bytes, ledger.capacity_bytes.div_ceil(2));
    /// assert_eq!(Budget::detect()?.ledger(), ledger);
    /// # Ok::<(), admit::BuildError>(())
    /// ```
    pub fn detect() -> Result<Budget, BuildError> {
        if let Some(budget) = of_process() {
            return Ok(budget);
        }
        // The files are read without the lock, and somebody may have been faster.
        let found = Budget::detect_with(Reserve::half())?;
        let mut of_process = OF_PROCESS.lock();
        if let Some(budget) = of_process.as_ref().and_then(Shared::budget) {
            return Ok(budget);
        }
        if let Some(origin) = found.origin() {
            let gate = Arc::downgrade(found.gate());
            *of_process = Some(Shared { gate, origin: Arc::clone(origin) });
        }
        Ok(found)
    }

    /// A budget of its own with the memory limit of this process and another reserve. It is the
    /// caller's to share: two of them give out the same memory twice.
    ///
    /// # Errors
    ///
    /// As for [`detect`](Budget::detect), and [`BuildError::ReserveAboveCapacity`] or
    /// [`BuildError::ReserveFraction`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, MIB, Reserve};
    ///
    /// let budget = Budget::detect_with(Reserve::fraction(0.3).at_least(MIB))?;
    /// assert!(budget.ledger().admissible_bytes() > 0);
    /// # Ok::<(), admit::BuildError>(())
    /// ```
    pub fn detect_with(reserve: Reserve) -> Result<Budget, BuildError> {
        Budget::detect_from(Path::new("/"), reserve)
    }

    /// The same for a tree whose `proc` and mount points are below `root`, as in
    /// [`MemoryFacts::read_from`].
    ///
    /// # Errors
    ///
    /// As for [`detect_with`](Budget::detect_with).
    pub fn detect_from(root: &Path, reserve: Reserve) -> Result<Budget, BuildError> {
        let facts = MemoryFacts::read_from(root);
        let found = find(&facts, reserve)?;
        let origin = Origin {
            root: root.to_owned(),
            reserve,
            mapped_bytes: facts.mapped_bytes,
            readings: AtomicU64::new(0),
            last: parking_lot::Mutex::new(Last { reading: 0, facts, source: found.source }),
        };
        let budget = Budget::new(found.capacity_bytes, found.reserve_bytes)?;
        Ok(budget.with_origin(Arc::new(origin)))
    }

    /// Reads the limit again and sets capacity and reserve accordingly, as
    /// [`resize`](Budget::resize) does. Gives what was read.
    ///
    /// # Errors
    ///
    /// [`DetectError::Given`] for a budget that was given its capacity. [`DetectError::Unread`]
    /// if a limit could not be read: the budget then stays as it is. [`DetectError::Forked`].
    pub fn redetect(&self) -> Result<MemoryFacts, DetectError> {
        let origin = self.origin().ok_or(DetectError::Given)?;
        if self.gate().was_forked() {
            return Err(DetectError::Forked);
        }
        let reading = origin.readings.fetch_add(1, Ordering::Relaxed) + 1;
        let mut facts = MemoryFacts::read_from(&origin.root);
        let mapped_bytes = std::mem::replace(&mut facts.mapped_bytes, origin.mapped_bytes);
        let found = find(&facts, origin.reserve);
        facts.mapped_bytes = mapped_bytes;
        self.gate().change(|state| {
            // Two threads may read at once. The later reading holds, whoever comes here last.
            let mut last = origin.last.lock();
            if reading > last.reading {
                last.reading = reading;
                last.facts = facts.clone();
                if let Ok(found) = &found {
                    last.source.clone_from(&found.source);
                    state.resize(found.capacity_bytes, found.reserve_bytes);
                }
            }
        });
        match found {
            Ok(_) => Ok(facts),
            Err(BuildError::Detect(error)) => Err(error),
            Err(other) => unreachable!("the reserve was good when the budget was made: {other}"),
        }
    }

    /// What was read last, for a budget that found its own limit; `None` for others, and in a
    /// process that was forked since.
    pub fn found(&self) -> Option<MemoryFacts> {
        let origin = self.origin().filter(|_| !self.gate().was_forked());
        origin.map(|origin| origin.facts())
    }

    /// [Reads the limit again](Budget::redetect) in intervals, on a thread of its own, until the
    /// guard is dropped or nobody has the budget any more. A reading that fails changes nothing,
    /// and shows in [`found`](Budget::found).
    ///
    /// A limit that is raised or taken away is followed as well: without a limit of its group, the
    /// process has the machine's memory.
    ///
    /// # Errors
    ///
    /// [`DetectError::Given`], [`DetectError::Interval`] for an interval of zero,
    /// [`DetectError::Thread`], or [`DetectError::Forked`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use admit::{Budget, DetectError, MIB};
    ///
    /// let budget = Budget::detect()?;
    /// let following = budget.follow(Duration::from_secs(60))?;
    /// drop(following);
    ///
    /// let given = Budget::new(64 * MIB, 0)?;
    /// assert!(matches!(given.follow(Duration::from_secs(60)), Err(DetectError::Given)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn follow(&self, every: Duration) -> Result<Follow, DetectError> {
        let origin = Arc::clone(self.origin().ok_or(DetectError::Given)?);
        if self.gate().was_forked() {
            return Err(DetectError::Forked);
        }
        if every.is_zero() {
            return Err(DetectError::Interval);
        }
        let (stop, stopped) = channel::<()>();
        let shared = Shared { gate: Arc::downgrade(self.gate()), origin };
        let thread = thread::Builder::new().name(String::from("admit-follow"));
        let started = thread.spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let Some(budget) = shared.budget() else { return };
                drop(budget.redetect());
            }
        });
        started.map_err(DetectError::Thread)?;
        Ok(Follow { _stop: stop })
    }
}

impl Shared {
    fn budget(&self) -> Option<Budget> {
        let gate = self.gate.upgrade().filter(|gate| !gate.was_forked())?;
        Some(Budget::of(gate, Some(Arc::clone(&self.origin))))
    }
}

fn of_process() -> Option<Budget> {
    OF_PROCESS.lock().as_ref().and_then(Shared::budget)
}

/// Keeps a budget at the limit of its process. [`Budget::follow`] makes one.
///
/// Dropping it ends that, without waiting for a reading that is being taken.
#[must_use = "following ends when this is dropped"]
pub struct Follow {
    /// The thread wakes when this is dropped. It is not waited for: a job that the shrunk budget
    /// ends on that thread may own the guard.
    _stop: Sender<()>,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow").finish_non_exhaustive()
    }
}
