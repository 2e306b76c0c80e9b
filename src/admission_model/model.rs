//! The model: every job that ever came, in order, and where it is. All else is counted anew,
//! each time it is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::accounts::Terms;
use crate::bench::Rank;
use crate::counts::Ended;
use crate::effects::{Fate, Verdict};
use crate::ledger::Ledger;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;
use crate::queue::Passed;
use crate::sys::clock::Moment;

/// Jobs, requests, workers and drains are numbered in the order in which they come.
pub(super) type Id = u64;

/// The lane of jobs whose lane is gone.
pub(super) const GONE: usize = usize::MAX;

/// Every third worker has low priority.
pub(super) fn rank(worker: Id) -> Rank {
    if worker % 3 == 2 { Rank::Low } else { Rank::Normal }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Submitter { crew: usize, lane: usize, id: Id },
    Acquirer(Id),
    Worker { crew: usize, id: Id },
    Drainer { crew: usize, id: Id },
}

impl Who {
    /// Those who stand in one line are told in its order; between lines no order is promised.
    pub(super) fn line(&self) -> (u8, usize, usize) {
        match *self {
            Who::Submitter { crew, lane, .. } => (0, crew, lane),
            Who::Acquirer(_) => (1, 0, 0),
            Who::Worker { crew, .. } => (2, crew, 0),
            Who::Drainer { crew, .. } => (3, crew, 0),
        }
    }

    pub(super) fn id(&self) -> Id {
        match *self {
            Who::Submitter { id, .. } | Who::Worker { id, .. } | Who::Drainer { id, .. } => id,
            Who::Acquirer(id) => id,
        }
    }

    /// Every second submitter may be told of its place a little later.
    pub(super) fn is_told_together(&self) -> bool {
        matches!(self, Who::Submitter { id, .. } if id % 2 == 1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum At {
    /// It has a place, and has not come.
    Reserved,
    Outside,
    Inside,
    /// Admitted as the how manieth of all.
    Ready(usize),
    Running,
    /// Has left the line, but its closure has not been dropped.
    Leaving,
    /// Was cancelled before a worker fetched it, and holds its bytes until its closure is dropped.
    Ending,
    Over,
}

#[derive(Debug)]
pub(super) struct ModelJob {
    pub(super) id: Id,
    pub(super) crew: usize,
    pub(super) lane: usize,
    pub(super) need: u64,
    pub(super) input: u64,
    /// While it is in flight.
    pub(super) held: u64,
    pub(super) since: Moment,
    pub(super) expires: Moment,
    /// How many had been admitted when it came, and when it was admitted.
    pub(super) came_after: usize,
    pub(super) admitted_as: Option<usize>,
    /// It was, and took a worker that was guaranteed to its lane.
    pub(super) has_guaranteed_worker: bool,
    pub(super) at: At,
    pub(super) end: Option<Ended>,
    pub(super) passed: Passed,
}

impl ModelJob {
    pub(super) fn waits(&self) -> bool {
        matches!(self.at, At::Inside | At::Outside)
    }

    pub(super) fn holds(&self) -> bool {
        matches!(self.at, At::Ready(_) | At::Running | At::Ending)
    }

    pub(super) fn submitter(&self) -> Who {
        Who::Submitter { crew: self.crew, lane: self.lane, id: self.id }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doing {
    Looking,
    Benched,
    Told,
    Running(Id),
}

/// Of the job at a head: what its line had used when it came there, and who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// The bits of a number that is not negative.
    pub(super) used: u64,
    pub(super) id: Id,
}

/// A lane, or the line of those who acquire permits directly.
#[derive(Clone, Debug)]
pub(super) struct ModelLine {
    pub(super) limit_jobs: usize,
    pub(super) limit_bytes: u64,
    pub(super) terms: Terms,
    pub(super) used: f64,
    pub(super) turn: Option<Turn>,
    pub(super) wants: bool,
    /// Of a lane that goes when it is not needed any more.
    pub(super) handles: Option<usize>,
    pub(super) newest_first_after: Option<Duration>,
}

impl ModelLine {
    pub(super) fn new(limit_jobs: usize, limit_bytes: u64, terms: Terms) -> ModelLine {
        ModelLine {
            limit_jobs,
            limit_bytes,
            terms,
            used: 0.0,
            turn: None,
            wants: false,
            handles: None,
            newest_first_after: None,
        }
    }
}

/// What the real one calls a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// As it called this request.
    Request(Id),
    Number(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ModelPermit {
    pub(super) name: Name,
    /// The lane whose job kept it.
    pub(super) of: Option<(usize, usize)>,
    pub(super) bytes: u64,
    pub(super) since: Moment,
}

#[derive(Debug)]
pub(super) struct ModelCrew {
    pub(super) limit: u64,
    pub(super) lanes: BTreeMap<usize, ModelLine>,
    /// The last one benched comes last.
    pub(super) workers: Vec<(Id, Doing)>,
    pub(super) drainers: Vec<Id>,
    pub(super) closed: bool,
    pub(super) gave_limit_back: bool,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) capacity: u64,
    pub(super) reserve: u64,
    pub(super) peak: u64,
    /// The most that any line has ever used.
    pub(super) level: f64,
    pub(super) last_use: u64,
    pub(super) admitted: usize,
    pub(super) crews: Vec<Option<ModelCrew>>,
    pub(super) jobs: Vec<ModelJob>,
    pub(super) acquirers: ModelLine,
    pub(super) requests: Vec<(Id, u64)>,
    pub(super) requests_since: BTreeMap<Id, Moment>,
    pub(super) requests_passed: BTreeMap<Id, Passed>,
    pub(super) overtaking: Overtaking,
    pub(super) oversize: Oversize,
    pub(super) is_capacity_hard: bool,
    pub(super) now: Moment,
    pub(super) overtook: Vec<Id>,
    pub(super) permits: Vec<ModelPermit>,
    /// When anybody last got or returned bytes.
    pub(super) moved: Moment,
    pub(super) told: Vec<(Who, Verdict)>,
    pub(super) gone: Vec<(Id, Fate)>,
    pub(super) returned: Vec<Id>,
}

impl Model {
    pub(super) fn new(capacity: u64, reserve: u64) -> Model {
        Model {
            capacity,
            reserve,
            peak: 0,
            level: 0.0,
            last_use: 0,
            admitted: 0,
            crews: Vec::new(),
            jobs: Vec::new(),
            acquirers: ModelLine::new(0, 0, Terms::PLAIN),
            requests: Vec::new(),
            requests_since: BTreeMap::new(),
            requests_passed: BTreeMap::new(),
            overtaking: Overtaking::NONE,
            oversize: Oversize::Refuse,
            is_capacity_hard: false,
            now: Moment::at(0),
            overtook: Vec::new(),
            permits: Vec::new(),
            moved: Moment::at(0),
            told: Vec::new(),
            gone: Vec::new(),
            returned: Vec::new(),
        }
    }

    pub(super) fn crew_ids(&self) -> Vec<usize> {
        (0..self.crews.len()).filter(|id| self.crews[*id].is_some()).collect()
    }

    pub(super) fn crew(&self, crew: usize) -> &ModelCrew {
        self.crews[crew].as_ref().unwrap()
    }

    pub(super) fn crew_mut(&mut self, crew: usize) -> &mut ModelCrew {
        self.crews[crew].as_mut().unwrap()
    }

    pub(super) fn job_mut(&mut self, id: Id) -> &mut ModelJob {
        self.jobs.iter_mut().find(|job| job.id == id).unwrap()
    }

    pub(super) fn jobs_at(&self, is_there: impl Fn(&ModelJob) -> bool) -> Vec<Id> {
        self.jobs.iter().filter(|job| is_there(job)).map(|job| job.id).collect()
    }

    pub(super) fn limits(&self) -> u64 {
        self.crews
            .iter()
            .flatten()
            .filter(|crew| !crew.gave_limit_back)
            .map(|crew| crew.limit)
            .sum()
    }

    pub(super) fn admissible(&self) -> u64 {
        self.capacity.saturating_sub(self.reserve + self.limits())
    }

    pub(super) fn held(&self) -> u64 {
        let jobs: u64 = self.jobs.iter().filter(|job| job.holds()).map(|job| job.held).sum();
        jobs + self.permits.iter().map(|permit| permit.bytes).sum::<u64>()
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger {
            capacity_bytes: self.capacity,
            reserve_bytes: self.reserve,
            waiting_limit_bytes: self.limits(),
            held_bytes: self.held(),
            peak_held_bytes: self.peak,
            jobs: self.jobs_in_flight() as u64,
            permits: self.permits.len() as u64,
        }
    }

    pub(super) fn jobs_in_flight(&self) -> usize {
        self.jobs.iter().filter(|job| job.holds()).count()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs_in_flight() == 0 && self.permits.is_empty()
    }

    /// Jobs and input bytes inside, places that are reserved included, and those bytes that are still to be dropped.
    pub(super) fn inside(&self, crew: usize, lane: Option<usize>) -> (usize, u64) {
        let (mut inside, mut bytes) = (0, 0);
        for job in &self.jobs {
            if job.crew == crew && lane.is_none_or(|lane| lane == job.lane) {
                inside += usize::from(matches!(job.at, At::Inside | At::Reserved));
                let counts = matches!(job.at, At::Inside | At::Leaving | At::Reserved);
                bytes += if counts { job.input } else { 0 };
            }
        }
        (inside, bytes)
    }

    pub(super) fn ready(&self, crew: usize) -> usize {
        self.jobs.iter().filter(|job| job.crew == crew && matches!(job.at, At::Ready(_))).count()
    }

    pub(super) fn free_workers(&self, crew: usize) -> usize {
        let workers = &self.crew(crew).workers;
        let busy = workers.iter().filter(|(_, doing)| matches!(doing, Doing::Running(_))).count();
        workers.len() - busy - self.ready(crew)
    }

    pub(super) fn is_over(&self, crew: usize) -> bool {
        let left = |job: &ModelJob| matches!(job.at, At::Running | At::Over | At::Reserved);
        self.crew(crew).closed && self.jobs.iter().all(|job| job.crew != crew || left(job))
    }

    /// The oldest job that may have a place now. Only the first outside of a lane may, and
    /// nobody gets bytes of the executor that an older one could use if there were enough.
    pub(super) fn next_to_move_in(&self) -> Option<Id> {
        for crew in self.crew_ids() {
            let mut lanes_seen = Vec::new();
            let mut older_waits = false;
            for job in self.jobs.iter().filter(|job| job.crew == crew && job.at == At::Outside) {
                if lanes_seen.contains(&job.lane) {
                    continue;
                }
                lanes_seen.push(job.lane);
                let ModelLine { limit_jobs, limit_bytes, .. } = self.crew(crew).lanes[&job.lane];
                let (inside, bytes) = self.inside(crew, Some(job.lane));
                let lane_has_bytes = job.input == 0 || bytes + job.input <= limit_bytes;
                if inside >= limit_jobs || !lane_has_bytes {
                    continue;
                }
                let crew_bytes = self.inside(crew, None).1;
                let crew_has_bytes =
                    !older_waits && crew_bytes + job.input <= self.crew(crew).limit;
                if job.input == 0 || crew_has_bytes {
                    return Some(job.id);
                }
                older_waits = true;
            }
        }
        None
    }

    pub(super) fn move_in(&mut self) {
        while let Some(id) = self.next_to_move_in() {
            self.job_mut(id).at = At::Inside;
            let submitter = self.job_mut(id).submitter();
            self.told.push((submitter, Verdict::Go));
        }
    }

    pub(super) fn settle(&mut self) {
        self.admit();
        self.rouse();
    }

    pub(super) fn admit(&mut self) {
        self.retire();
        self.note_heads();
        self.move_in();
        self.note_heads();
        while let Some((id, need)) = self.next_claim() {
            self.moved = self.now;
            if self.requests.first() == Some(&(id, need)) {
                self.requests.remove(0);
                self.requests_passed.remove(&id);
                let (name, since) = (Name::Request(id), self.now);
                self.permits.push(ModelPermit { name, of: None, bytes: need, since });
                self.told.push((Who::Acquirer(id), Verdict::Go));
            } else {
                self.admitted += 1;
                let admitted = self.admitted;
                let ready = At::Ready(admitted);
                let (crew, lane) = (self.job_mut(id).crew, self.job_mut(id).lane);
                let is_promised = self.promised_workers(crew, lane) > 0;
                let job = self.job_mut(id);
                job.has_guaranteed_worker = is_promised;
                job.held = need;
                job.admitted_as = Some(admitted);
                let was = std::mem::replace(&mut job.at, ready);
                if was == At::Outside {
                    let submitter = self.job_mut(id).submitter();
                    self.told.push((submitter, Verdict::Go));
                }
            }
            self.peak = self.peak.max(self.held());
            self.note_heads();
            self.move_in();
        }
    }

    pub(super) fn end(&mut self, id: Id, end: Ended) {
        let job = self.job_mut(id);
        job.end = Some(end);
        job.at = match job.at {
            At::Inside => At::Leaving,
            At::Ready(_) => At::Ending,
            _ => At::Over,
        };
    }

    pub(super) fn refuse(&mut self, id: Id, end: Ended, verdict: Option<Verdict>) {
        self.end(id, end);
        self.returned.push(id);
        let submitter = self.job_mut(id).submitter();
        self.told.extend(verdict.map(|verdict| (submitter, verdict)));
    }

    pub(super) fn evict_what_never_fits(&mut self) {
        let most = self.largest(None);
        for (id, _) in self.requests.extract_if(.., |(_, need)| *need > most) {
            self.told.push((Who::Acquirer(id), Verdict::NeverFits));
        }
        let largest = |job: &ModelJob| self.largest(Some((job.crew, job.lane)));
        for id in self.jobs_at(|job| job.waits() && job.need > largest(job)) {
            let job = self.jobs.iter().find(|job| job.id == id).unwrap();
            let (at, needed_bytes) = (job.at, job.need);
            let admissible_bytes = self.largest(Some((job.crew, job.lane)));
            if at == At::Outside {
                self.refuse(id, Ended::RefusedNeverFits, Some(Verdict::NeverFits));
            } else {
                self.end(id, Ended::Evicted);
                self.gone.push((id, Fate::NeverFits { needed_bytes, admissible_bytes }));
            }
        }
    }
}
