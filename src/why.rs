//! Why the job at the head of a lane waits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::LaneId;
use crate::cost::Bytes;
use crate::gate::State;
use crate::sys::clock::Moment;

/// How many of those that hold bytes are named.
const NAMED: usize = 3;

/// What the job at a head lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// A worker: all are busy, or kept for lanes that are guaranteed some.
    Worker,
    /// The lane runs as many jobs [as it may](crate::LaneOptions::most_workers).
    LaneWorkers {
        /// The most that may run at once.
        most: usize,
    },
    /// The lane holds as many bytes [as it may](crate::LaneOptions::most_bytes), or would with the
    /// job.
    LaneBytes {
        /// What the lane's jobs and permits hold.
        held_bytes: u64,
        /// The most that they may.
        most_bytes: u64,
    },
    /// Bytes of the budget.
    Bytes,
    /// Nothing but its turn: somebody who waits for bytes is before it.
    Turn,
}

impl Resource {
    pub(crate) fn lacked_by(state: &State, at: LaneId, needed_bytes: u64) -> Resource {
        let crew = state.crew(at.crew);
        let account = state.accounts().get(crew.lane(at.lane).account);
        let (terms, held_bytes) = (account.terms, account.held_bytes);
        if account.running_jobs >= terms.most_workers {
            Resource::LaneWorkers { most: terms.most_workers }
        } else if !account.has_room(needed_bytes) {
            Resource::LaneBytes { held_bytes, most_bytes: terms.most_bytes }
        } else if !crew.has_free_worker_for(account) {
            Resource::Worker
        } else if !state.fits(crew.lane(at.lane).account, needed_bytes) {
            Resource::Bytes
        } else {
            Resource::Turn
        }
    }
}

/// What holds bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HolderKind {
    /// A job that is admitted and has not ended.
    Job,
    /// A permit that a job kept.
    Kept,
    /// A permit that was acquired directly.
    Acquired,
}

/// A job or a permit that holds bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// What it is.
    pub kind: HolderKind,
    /// The lane of the job, which may be another executor's; `None` for a permit that was acquired.
    pub lane: Option<Arc<str>>,
    /// What it holds.
    pub bytes: u64,
    /// Since when it has held some: the job was admitted, or the permit made, so long ago. The
    /// parts of a permit that was split are as old as it is.
    pub age: Duration,
}

impl Holder {
    /// Those that hold most on a budget, the largest first, and of equal ones the oldest.
    pub(crate) fn largest(state: &State, now: Moment) -> Vec<Holder> {
        let jobs = state.crews().flat_map(|(id, crew)| {
            crew.bench().holdings().map(move |holding| {
                (holding.bytes, holding.since, HolderKind::Job, Some((id, holding.lane)))
            })
        });
        let permits = state.permits().held().map(|held| {
            let kind = if held.of.is_some() { HolderKind::Kept } else { HolderKind::Acquired };
            (held.bytes, held.since, kind, held.of.map(|of| (of.crew, of.lane)))
        });
        let mut largest = Vec::with_capacity(NAMED + 1);
        for holder in jobs.chain(permits).filter(|(bytes, ..)| *bytes > 0) {
            let (bytes, since, ..) = holder;
            let goes_before =
                |(its, its_since, ..): &(u64, Moment, _, _)| (bytes, *its_since) > (*its, since);
            let place = largest.iter().position(goes_before).unwrap_or(largest.len());
            largest.insert(place, holder);
            largest.truncate(NAMED);
        }
        let name = |(crew, lane): (usize, usize)| Arc::clone(&state.crew(crew).lane(lane).name);
        let holder = |(bytes, since, kind, lane): (u64, Moment, HolderKind, Option<_>)| Holder {
            kind,
            lane: lane.map(name),
            bytes,
            age: now.since(since),
        };
        largest.into_iter().map(holder).collect()
    }
}

/// `a job of logins with 64 MiB for 3 s`
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            HolderKind::Job => "a job",
            HolderKind::Kept => "a result",
            HolderKind::Acquired => "a permit",
        })?;
        if let Some(lane) = &self.lane {
            write!(f, " of {lane}")?;
        }
        write!(f, " with {}", Bytes(self.bytes))?;
        if self.age.as_secs() > 0 {
            write!(f, " for {} s", self.age.as_secs())?;
        }
        Ok(())
    }
}

/// Why the job at the head of a lane waits: what it needs, what is free, who holds the rest.
///
/// Its [`Display`](fmt::Display) is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The job's working and input bytes.
    pub needed_bytes: u64,
    /// Admissible bytes that nobody holds.
    pub free_bytes: u64,
    /// The most that can be held at once.
    pub admissible_bytes: u64,
    /// Those of the free ones that are guaranteed to other lanes.
    pub promised_bytes: u64,
    /// What it lacks.
    pub resource: Resource,
    /// The executor's admitted jobs.
    pub running_jobs: usize,
    /// Their bytes.
    pub running_bytes: u64,
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
    /// Those jobs and permits, of everybody on the budget, that hold most: at most three, the
    /// largest first.
    pub largest: Vec<Holder>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job at the head needs {}", Bytes(self.needed_bytes))?;
        match self.resource {
            Resource::Worker => {
                return write!(f, "; no worker is free for it, {} jobs run", self.running_jobs);
            }
            Resource::LaneWorkers { most } => {
                return write!(f, "; its lane runs as many jobs as it may, {most}");
            }
            Resource::LaneBytes { held_bytes, most_bytes } => {
                let (held, most) = (Bytes(held_bytes), Bytes(most_bytes));
                return write!(f, "; its lane holds {held} of the {most} that it may");
            }
            Resource::Turn => {
                return f.write_str("; somebody who waits for bytes is before it");
            }
            Resource::Bytes => {}
        }
        if self.needed_bytes > self.admissible_bytes {
            let admissible = Bytes(self.admissible_bytes);
            write!(f, ", more than the {admissible} admissible, and runs when nothing else does")?;
        } else {
            let (free, admissible) = (Bytes(self.free_bytes), Bytes(self.admissible_bytes));
            write!(f, "; {free} of {admissible} admissible are free")?;
        }
        if self.promised_bytes > 0 {
            write!(f, ", {} of them guaranteed to other lanes", Bytes(self.promised_bytes))?;
        }
        write!(
            f,
            "; {} running jobs hold {} and {} permits hold {}",
            self.running_jobs,
            Bytes(self.running_bytes),
            self.permits,
            Bytes(self.permit_bytes)
        )?;
        if self.kept_permits > 0 {
            let kept = Bytes(self.kept_bytes);
            write!(f, ", and {} results that are kept {kept}", self.kept_permits)?;
        }
        if self.others_bytes > 0 {
            write!(f, ", and jobs of other executors {}", Bytes(self.others_bytes))?;
        }
        for (nth, holder) in self.largest.iter().enumerate() {
            f.write_str(if nth == 0 { "; most is held by " } else { ", " })?;
            write!(f, "{holder}")?;
        }
        Ok(())
    }
}
