//! What was asked, what was found, what was decided, and from which source.

use std::fmt;

use crate::allocator::{self, Allocator, Bounds};
use crate::budget::Budget;
use crate::cost::Bytes;
use crate::cpu::CpuFacts;
use crate::environment::{self, Override};
use crate::error::BuildError;
use crate::fact::Fact;
use crate::ledger::Ledger;
use crate::memory::MemoryFacts;
use crate::policy::{CpuPolicy, WorkersSource};
use crate::reserve::Reserve;
use crate::retention::{self, Retention};
use crate::sys::resident;

/// How an executor came to its numbers. [`Builder::plan`](crate::Builder::plan) makes one before
/// anything is started, and [`Executor::plan`](crate::Executor::plan) gives the one that was
/// carried out.
///
/// Its [`Display`](fmt::Display) is a line for a log.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Executor, MIB};
///
/// let budget = Budget::new(384 * MIB, 96 * MIB)?;
/// let executor = Executor::builder().workers(2).budget(budget).build()?;
/// assert!(executor.plan().to_string().starts_with(
///     "2 workers (as given); budget 384 MiB (as given), 96 MiB of it in reserve, 288 MiB for jobs",
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The workers.
    pub workers: WorkersPlan,
    /// The budget.
    pub memory: MemoryPlan,
    /// The allocator.
    pub allocator: Allocator,
}

/// How many workers, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkersPlan {
    /// The rule that was asked for.
    pub asked: CpuPolicy,
    /// What the environment says; [`Override::Absent`] also if it was not asked.
    pub environment: Override,
    /// What was found. `None` where the number was given and nothing was looked for.
    pub found: Option<CpuFacts>,
    /// How many workers there are to be.
    pub decided: usize,
    /// What decided.
    pub source: WorkersSource,
    /// How many of them run at normal priority; the others at nice 10. `None`: all of them do.
    pub nice_beyond: Option<usize>,
    /// How many were started. `None` as long as none were.
    pub started: Option<usize>,
    /// Why the next one was not, if there are fewer than decided.
    pub shortfall: Option<String>,
}

/// How many bytes, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The reserve that was asked for of a limit that had to be found. `None`: the budget was
    /// given its capacity.
    pub asked: Option<Reserve>,
    /// What was found last. Where the capacity was given it decides nothing, and says whether the
    /// process [has as much](MemoryPlan::is_above_limit).
    pub found: MemoryFacts,
    /// Where the budget's bytes were when the plan was made.
    pub ledger: Ledger,
    /// The limit that decided, for a budget that found its own.
    pub source: Option<String>,
    /// What was resident when the plan was made, less the bytes that were held: what the rest of
    /// the program takes. In bytes; `None` if it could not be read.
    pub baseline_bytes: Option<u64>,
}

impl Plan {
    pub(crate) fn new(workers: WorkersPlan, budget: &Budget, bounds_allocator: bool) -> Plan {
        let memory = MemoryPlan::new(budget);
        let bounds = bounds_allocator.then(|| memory.bounds(workers.decided));
        let allocator = allocator::look(bounds);
        Plan { workers, memory, allocator }
    }

    pub(crate) fn retention(&self) -> Option<Retention> {
        let baseline_bytes = self.memory.baseline_bytes?;
        let reserve_bytes = self.memory.ledger.reserve_bytes;
        matches!(self.allocator, Allocator::Bounded { .. })
            .then(|| Retention::new(baseline_bytes, reserve_bytes, self.workers.decided))
    }
}

impl WorkersPlan {
    pub(crate) fn new(
        asked: CpuPolicy,
        asks_environment: bool,
        nice_beyond: Option<usize>,
    ) -> Result<WorkersPlan, BuildError> {
        // Read also where a number was given: a value that is wrong is never passed over.
        let environment = if asks_environment { environment::workers()? } else { Override::Absent };
        let mut found = None;
        let (decided, source) = match (asked.explicit(), &environment) {
            (Some(workers), _) => (workers, WorkersSource::Explicit),
            (None, Override::Workers(workers)) => (*workers, WorkersSource::Environment),
            (None, Override::Absent | Override::NotNamed(_) | Override::Inherited) => {
                let facts = found.insert(CpuFacts::detect());
                asked.decide(facts, cfg!(windows))
            }
        };
        Ok(WorkersPlan {
            asked,
            environment,
            found,
            decided,
            source,
            nice_beyond,
            started: None,
            shortfall: None,
        })
    }

    /// Whether somebody said how many, so that fewer will not do.
    pub fn is_explicit(&self) -> bool {
        matches!(self.source, WorkersSource::Explicit | WorkersSource::Environment)
    }
}

impl MemoryPlan {
    fn new(budget: &Budget) -> MemoryPlan {
        let ledger = budget.ledger();
        let origin = budget.origin();
        MemoryPlan {
            asked: origin.map(|origin| origin.reserve()),
            found: origin.map_or_else(MemoryFacts::detect, |origin| origin.facts()),
            ledger,
            source: origin.map(|origin| origin.source()),
            baseline_bytes: resident::resident_bytes()
                .map(|bytes| bytes.saturating_sub(ledger.held_bytes)),
        }
    }

    fn bounds(&self, workers: usize) -> Bounds {
        let reserve_bytes = self.ledger.reserve_bytes;
        let is_mapping_limited = self.found.address_space.limit().is_some();
        Bounds {
            returned_from_bytes: retention::returned_from_bytes(reserve_bytes, workers),
            most_arenas: is_mapping_limited.then(|| retention::most_arenas(reserve_bytes)),
        }
    }

    /// Whether the rest of the program takes more already than is in reserve for it, so that the
    /// jobs cannot have what is admissible. Never with a reserve of 0: then nobody asked for one.
    pub fn is_reserve_used_up(&self) -> bool {
        let reserve_bytes = self.ledger.reserve_bytes;
        reserve_bytes > 0 && self.baseline_bytes.is_some_and(|bytes| bytes > reserve_bytes)
    }

    /// Whether the capacity is larger than the limit that was found: who gives a capacity is
    /// taken at their word, and jobs that use all of it are then killed.
    pub fn is_above_limit(&self) -> bool {
        self.found.least().limit().is_some_and(|limit| limit < self.ledger.capacity_bytes)
    }
}

impl fmt::Display for WorkersPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers = self.started.unwrap_or(self.decided);
        write!(f, "{workers} worker{} (", if workers == 1 { "" } else { "s" })?;
        if self.source != WorkersSource::Explicit {
            write!(f, "{}: ", self.asked)?;
        }
        write!(f, "{}", self.source)?;
        if matches!(self.environment, Override::NotNamed(_) | Override::Inherited) {
            write!(f, "; {}", self.environment)?;
        }
        write!(f, ")")?;
        if let Some(why) = &self.shortfall {
            write!(f, ", and not {}: {why}", self.decided)?;
        }
        if let Some(first) = self.nice_beyond.filter(|first| *first < workers) {
            write!(f, ", {} of them at nice 10", workers - first)?;
        }
        Ok(())
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.as_deref().unwrap_or("as given");
        let reserve = Bytes(self.ledger.reserve_bytes);
        write!(
            f,
            "budget {} ({source}), {reserve} of it in reserve",
            Bytes(self.ledger.capacity_bytes)
        )?;
        if self.ledger.waiting_limit_bytes > 0 {
            write!(f, ", {} for waiting input", Bytes(self.ledger.waiting_limit_bytes))?;
        }
        match self.ledger.admissible_bytes() {
            0 => write!(f, ", nothing for jobs")?,
            bytes => write!(f, ", {} for jobs", Bytes(bytes))?,
        }
        if let (true, Fact::Limited { limit, at }) = (self.is_above_limit(), self.found.least()) {
            write!(f, "; the limit is {} ({at})", Bytes(limit))?;
        }
        if self.is_reserve_used_up() {
            let baseline = Bytes(self.baseline_bytes.unwrap_or(0));
            write!(f, "; the reserve is used up, {baseline} are resident without any job")?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}; allocator: {}", self.workers, self.memory, self.allocator)
    }
}
