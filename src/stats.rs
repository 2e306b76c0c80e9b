//! A picture of an executor, as of one instant.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cost::Bytes;
use crate::counts::Counts;
use crate::error::Limit;
use crate::gate::State;
use crate::ledger::Ledger;
use crate::retention;
use crate::sys::clock::Moment;
use crate::sys::resident;

/// The state of one lane.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneStats {
    /// The lane's name.
    pub name: Arc<str>,
    /// Jobs that wait in the queue.
    pub waiting_jobs: usize,
    /// The most that may.
    pub capacity: usize,
    /// The input bytes that wait in the queue, with those of cancelled jobs until they are
    /// dropped.
    pub waiting_input_bytes: u64,
    /// The most that may.
    pub limit_input_bytes: u64,
    /// Submissions that wait for a place in the queue.
    pub blocked_submits: usize,
    /// The input that they hold. It is their callers' memory, and in no account of the budget.
    pub blocked_input_bytes: u64,
    /// Which limit keeps the first of them out.
    pub blocked_by: Option<Limit>,
    /// Jobs that are admitted and have not ended.
    pub running_jobs: usize,
    /// Their bytes, and those of jobs that were cancelled before a worker had them, until their
    /// closures are dropped.
    pub running_bytes: u64,
    /// Permits that its jobs kept, with results or otherwise, and that are not dropped.
    pub kept_permits: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// How long the job that has waited longest has.
    pub oldest_wait: Option<Duration>,
    /// What became of the lane's jobs.
    pub counts: Counts,
    /// Why the job at the head is not running, if there is one.
    pub why: Option<Why>,
}

/// The state of an executor and its budget, all as of the same instant.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use admit::{Budget, Cost, Executor, MIB};
///
/// let executor = Executor::builder().workers(2).budget(Budget::new(64 * MIB, 0)?).build()?;
/// let (release, wait) = channel::<()>();
/// let first = executor.submit(Cost::new(48 * MIB), move || wait.recv().is_err())?;
/// let second = executor.submit(Cost::new(32 * MIB), || ())?;
///
/// let stats = executor.stats();
/// assert_eq!((stats.running_jobs, stats.waiting_jobs), (1, 1));
/// assert_eq!(
///     stats.lanes[0].why.unwrap().to_string(),
///     "the job at the head needs 32 MiB; 16 MiB of 64 MiB admissible are free; \
///      1 running jobs hold 48 MiB and 0 permits hold 0 bytes",
/// );
/// drop(release);
/// first.join()?;
/// second.join()?;
/// assert_eq!(executor.stats().counts.completed, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The budget's bytes, those of other executors on it included.
    pub ledger: Ledger,
    /// Permits that were acquired directly and are held.
    pub permits: u64,
    /// Their bytes.
    pub permit_bytes: u64,
    /// Callers that wait for a permit.
    pub blocked_acquires: usize,
    /// The executor's workers.
    pub workers: usize,
    /// Workers that have no job.
    pub free_workers: usize,
    /// Whether the executor is closed.
    pub is_closed: bool,
    /// Jobs that wait, in all lanes, with those that were cancelled until they are dropped.
    pub waiting_jobs: usize,
    /// Their input bytes.
    pub waiting_input_bytes: u64,
    /// The most input bytes that may wait in all lanes.
    pub limit_waiting_bytes: u64,
    /// Jobs that are admitted and have not ended, in all lanes.
    pub running_jobs: usize,
    /// Their bytes.
    pub running_bytes: u64,
    /// Permits that jobs of all lanes kept, and that are not dropped.
    pub kept_permits: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// How long the job that has waited longest has.
    pub oldest_wait: Option<Duration>,
    /// What became of the jobs of all lanes.
    pub counts: Counts,
    /// Each lane, the default one first.
    pub lanes: Vec<LaneStats>,
    /// The process's resident memory, in bytes; `None` if it could not be asked for.
    pub resident_bytes: Option<u64>,
    /// Resident memory that nothing here explains, in bytes: what is resident less what was when
    /// the executor was built, less what jobs and permits hold, less the input that waits.
    ///
    /// It is what the reserve has to cover beside that first part: blocks that the allocator
    /// keeps, results that nobody has taken, jobs that need more than they declared, and what
    /// the rest of the program has come to take since. Jobs that have not touched yet what they
    /// declared make it smaller than it is, so read it where little runs.
    pub retained_bytes: Option<u64>,
}

impl Stats {
    pub(crate) fn of(state: &State, crew: usize, now: Moment) -> Stats {
        let ledger = *state.ledger();
        let permits = state.permits();
        let acquired = state.accounts().get(permits.account());
        let crew = state.crew(crew);
        let mut stats = Stats {
            ledger,
            permits: acquired.permits,
            permit_bytes: acquired.permit_bytes,
            kept_permits: 0,
            kept_bytes: 0,
            blocked_acquires: permits.waiting(),
            workers: crew.bench().workers(),
            free_workers: crew.bench().free(),
            is_closed: crew.is_closed(),
            waiting_jobs: crew.waiting_jobs(),
            waiting_input_bytes: crew.waiting_bytes(),
            limit_waiting_bytes: crew.waiting_limit_bytes(),
            running_jobs: 0,
            running_bytes: 0,
            oldest_wait: None,
            counts: *crew.past(),
            lanes: Vec::with_capacity(crew.lane_count()),
            resident_bytes: None,
            retained_bytes: None,
        };
        for (_, lane) in crew.lanes() {
            let account = state.accounts().get(lane.account);
            stats.running_jobs += account.running_jobs;
            stats.running_bytes += account.held_bytes - account.permit_bytes;
            stats.kept_permits += account.permits;
            stats.kept_bytes += account.permit_bytes;
            stats.counts.add(&lane.counts);
        }
        let largest = crew.bench().holdings().max_by_key(|holding| holding.bytes);
        let largest_job = largest.map(|holding| (holding.bytes, now.since(holding.since)));
        let own_bytes = stats.running_bytes + stats.kept_bytes + stats.permit_bytes;
        let others_bytes = ledger.held_bytes - own_bytes;
        for (number, lane) in crew.lanes() {
            let account = state.accounts().get(lane.account);
            let head = lane.head().map(|(_, entry)| entry);
            let oldest_wait = lane.oldest_since().map(|since| now.since(since));
            stats.oldest_wait = stats.oldest_wait.max(oldest_wait);
            stats.lanes.push(LaneStats {
                name: Arc::clone(&lane.name),
                waiting_jobs: lane.inside.len(),
                capacity: lane.limit_jobs,
                waiting_input_bytes: lane.inside_bytes,
                limit_input_bytes: lane.limit_input_bytes,
                blocked_submits: lane.outside.len(),
                blocked_input_bytes: lane.outside_bytes(),
                blocked_by: crew.limit_met_outside(number),
                running_jobs: account.running_jobs,
                running_bytes: account.held_bytes - account.permit_bytes,
                kept_permits: account.permits,
                kept_bytes: account.permit_bytes,
                oldest_wait,
                counts: lane.counts,
                why: head.map(|entry| Why {
                    needed_bytes: entry.bytes,
                    free_bytes: ledger.free_bytes(),
                    admissible_bytes: ledger.admissible_bytes(),
                    has_free_worker: crew.has_free_worker(),
                    running_jobs: stats.running_jobs,
                    running_bytes: stats.running_bytes,
                    largest_job_bytes: largest_job.map_or(0, |(bytes, _)| bytes),
                    largest_job_age: largest_job.map(|(_, age)| age),
                    permits: stats.permits,
                    permit_bytes: stats.permit_bytes,
                    kept_permits: stats.kept_permits,
                    kept_bytes: stats.kept_bytes,
                    others_bytes,
                }),
            });
        }
        stats
    }

    /// `baseline_bytes` is told what is resident.
    pub(crate) fn measure(&mut self, baseline_bytes: impl FnOnce(u64) -> Option<u64>) {
        self.resident_bytes = resident::resident_bytes();
        let explained = self.ledger.held_bytes.saturating_add(self.waiting_input_bytes);
        self.retained_bytes = self
            .resident_bytes
            .and_then(|resident| Some((resident, baseline_bytes(resident)?)))
            .map(|(resident, baseline)| retention::retained_bytes(resident, baseline, explained));
    }
}

/// Why the job at the head of a lane waits: what it needs, what is free, who holds the rest.
///
/// Its [`Display`](fmt::Display) is one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The job's working and input bytes.
    pub needed_bytes: u64,
    /// Admissible bytes that nobody holds.
    pub free_bytes: u64,
    /// The most that can be held at once.
    pub admissible_bytes: u64,
    /// Whether a worker could take the job.
    pub has_free_worker: bool,
    /// The executor's admitted jobs.
    pub running_jobs: usize,
    /// Their bytes.
    pub running_bytes: u64,
    /// What the one of them holds that holds most.
    pub largest_job_bytes: u64,
    /// How long ago that one was admitted.
    pub largest_job_age: Option<Duration>,
    /// Permits that were acquired directly and are held.
    pub permits: u64,
    /// Their bytes.
    pub permit_bytes: u64,
    /// Permits that the executor's jobs kept and that are not dropped.
    pub kept_permits: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Bytes held by the jobs of other executors on the same budget, and kept by them.
    pub others_bytes: u64,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job at the head needs {}", Bytes(self.needed_bytes))?;
        if !self.has_free_worker {
            return write!(f, "; all workers are busy with {} jobs", self.running_jobs);
        }
        if self.needed_bytes > self.admissible_bytes {
            let admissible = Bytes(self.admissible_bytes);
            write!(f, ", more than the {admissible} admissible, and runs when nothing else does")?;
        } else {
            let (free, admissible) = (Bytes(self.free_bytes), Bytes(self.admissible_bytes));
            write!(f, "; {free} of {admissible} admissible are free")?;
        }
        if self.needed_bytes <= self.free_bytes {
            return f.write_str("; somebody who came before it waits for bytes");
        }
        write!(
            f,
            "; {} running jobs hold {} and {} permits hold {}",
            self.running_jobs,
            Bytes(self.running_bytes),
            self.permits,
            Bytes(self.permit_bytes)
        )?;
        if let Some(age) = self.largest_job_age.filter(|age| age.as_secs() > 0) {
            let largest = Bytes(self.largest_job_bytes);
            write!(f, ", the largest job {largest} for {} s", age.as_secs())?;
        }
        if self.kept_permits > 0 {
            let kept = Bytes(self.kept_bytes);
            write!(f, ", and {} results that are kept {kept}", self.kept_permits)?;
        }
        if self.others_bytes > 0 {
            write!(f, ", and jobs of other executors {}", Bytes(self.others_bytes))?;
        }
        Ok(())
    }
}
