//! A picture of an executor, as of one instant.

use std::sync::Arc;
use std::time::Duration;

use crate::answer::LaneId;
use crate::counts::Counts;
use crate::error::Limit;
use crate::gate::State;
use crate::ledger::Ledger;
use crate::retention;
use crate::sys::clock::Moment;
use crate::sys::resident;
use crate::why::{Holder, Resource, Why};

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
    /// [Places](crate::Place) that are taken for jobs still to come.
    pub reserved_places: usize,
    /// The input bytes that wait in the queue, with those of cancelled jobs until they are
    /// dropped, and those of places that are taken.
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
    /// The lane's [share](crate::LaneOptions::share).
    pub share: u32,
    /// What the lane has had, in byte-seconds: its bytes, or the workers' part of the admissible
    /// bytes for its jobs if that is more, over time. Lanes that all wait all the time have it in
    /// proportion to their shares. Kept while the budget has more than one lane.
    pub received_byte_seconds: f64,
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
///     stats.lanes[0].why.as_ref().unwrap().to_string(),
///     "the job at the head needs 32 MiB; 16 MiB of 64 MiB admissible are free; \
///      1 running jobs hold 48 MiB and 0 permits hold 0 bytes; \
///      most is held by a job of default with 48 MiB",
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
    pub(crate) fn of(state: &State, id: usize, now: Moment) -> Stats {
        let ledger = *state.ledger();
        let permits = state.permits();
        let acquired = state.accounts().get(permits.account());
        let crew = state.crew(id);
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
        let largest = if crew.lanes().any(|(_, lane)| lane.head().is_some()) {
            Holder::largest(state, now)
        } else {
            Vec::new()
        };
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
                reserved_places: lane.reserved_jobs,
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
                share: account.terms.share,
                received_byte_seconds: state.accounts().received(lane.account) / 1e9,
                oldest_wait,
                counts: lane.counts,
                why: head.map(|entry| Why {
                    needed_bytes: entry.bytes,
                    free_bytes: ledger.free_bytes(),
                    admissible_bytes: ledger.admissible_bytes(),
                    promised_bytes: state.accounts().promised_to_others(lane.account),
                    resource: Resource::lacked_by(
                        state,
                        LaneId { crew: id, lane: number },
                        entry.bytes,
                    ),
                    running_jobs: stats.running_jobs,
                    running_bytes: stats.running_bytes,
                    permits: stats.permits,
                    permit_bytes: stats.permit_bytes,
                    kept_permits: stats.kept_permits,
                    kept_bytes: stats.kept_bytes,
                    others_bytes,
                    largest: largest.clone(),
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
