//! The model of shares, guarantees and ceilings: who is next.

use super::model::{At, GONE, Id, Model, ModelJob, ModelLine, Turn};
use crate::accounts::Terms;
use crate::admission::DEFAULT_TIMEOUT;
use crate::counts::Ended;
use crate::crew::WINDOW;
use crate::effects::{Fate, Verdict};
use crate::oversize::Oversize;
use crate::queue::Passed;

/// What a line holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) jobs: usize,
    pub(super) bytes: u64,
    worker_bytes: u64,
}

impl Held {
    /// Exact: shares are powers of two, and the numbers are small.
    fn use_in(&self, nanos: u64, terms: &Terms) -> f64 {
        let held = self.bytes.max(self.jobs as u64 * self.worker_bytes);
        (held * nanos) as f64 / f64::from(terms.share)
    }
}

/// The first of a line, which may go as far as its own line is concerned.
#[derive(Clone, Copy, Debug)]
struct ModelClaim {
    turn: Turn,
    line: Option<(usize, usize)>,
    need: u64,
    /// What is guaranteed to the line and not held by it.
    promised: u64,
    has_guarantee: bool,
    /// A worker is free for anybody, or guaranteed to the lane.
    has_worker: bool,
}

impl Model {
    /// All lines: the lanes by executor and number, and the acquirers.
    pub(super) fn lines(&self) -> Vec<Option<(usize, usize)>> {
        let lanes_of = |crew: usize| self.crew(crew).lanes.keys().map(move |at| (crew, *at));
        let lanes = self.crew_ids().into_iter().flat_map(lanes_of).map(Some);
        lanes.chain([None]).collect()
    }

    pub(super) fn line(&self, line: Option<(usize, usize)>) -> &ModelLine {
        match line {
            Some((crew, lane)) => &self.crew(crew).lanes[&lane],
            None => &self.acquirers,
        }
    }

    fn line_mut(&mut self, line: Option<(usize, usize)>) -> &mut ModelLine {
        match line {
            Some((crew, lane)) => self.crew_mut(crew).lanes.get_mut(&lane).unwrap(),
            None => &mut self.acquirers,
        }
    }

    /// Whether there is more than one lane.
    fn is_shared(&self) -> bool {
        self.lines().len() > 2
    }

    pub(super) fn held_by(&self, line: Option<(usize, usize)>) -> Held {
        let Some((crew, lane)) = line else {
            return Held { bytes: self.permit_bytes(None), ..Held::default() };
        };
        let workers = self.crew(crew).workers.len().max(1) as u64;
        let bytes = self.permit_bytes(line);
        let mut held = Held { bytes, worker_bytes: self.admissible() / workers, jobs: 0 };
        let is_there = |job: &&ModelJob| (job.crew, job.lane) == (crew, lane) && job.holds();
        for job in self.jobs.iter().filter(is_there) {
            held.bytes += job.held;
            held.jobs += usize::from(job.at != At::Ending);
        }
        held
    }

    fn permit_bytes(&self, of: Option<(usize, usize)>) -> u64 {
        self.permits.iter().filter(|permit| permit.of == of).map(|permit| permit.bytes).sum()
    }

    fn promised(&self, line: Option<(usize, usize)>) -> u64 {
        self.line(line).terms.guaranteed_bytes.saturating_sub(self.held_by(line).bytes)
    }

    pub(super) fn all_promised(&self) -> u64 {
        self.lines().into_iter().map(|line| self.promised(line)).sum()
    }

    pub(super) fn all_promised_workers(&self, crew: usize) -> usize {
        let lanes = self.crew(crew).lanes.keys();
        lanes.map(|lane| self.promised_workers(crew, *lane)).sum()
    }

    /// Forgets lanes that nobody holds and that have no jobs.
    pub(super) fn retire(&mut self) {
        for line in self.lines() {
            let Some((crew, lane)) = line else { continue };
            let is_its = |job: &ModelJob| (job.crew, job.lane) == (crew, lane);
            let has_jobs = self.jobs.iter().any(|job| is_its(job) && job.at != At::Over);
            let has_permits = self.permits.iter().any(|permit| permit.of == line);
            if has_jobs || has_permits || self.line(line).handles != Some(0) {
                continue;
            }
            self.crew_mut(crew).lanes.remove(&lane);
            for job in self.jobs.iter_mut().filter(|job| (job.crew, job.lane) == (crew, lane)) {
                job.lane = GONE;
            }
        }
    }

    pub(super) fn promised_workers(&self, crew: usize, lane: usize) -> usize {
        let guaranteed = self.crew(crew).lanes[&lane].terms.guaranteed_workers;
        guaranteed.saturating_sub(self.held_by(Some((crew, lane))).jobs)
    }

    fn guaranteed(&self) -> u64 {
        self.lines().iter().map(|line| self.line(*line).terms.guaranteed_bytes).sum()
    }

    /// The largest need that can ever be met.
    pub(super) fn largest(&self, line: Option<(usize, usize)>) -> u64 {
        let terms = self.line(line).terms;
        let guaranteed = self.guaranteed();
        let common = self.admissible().saturating_sub(guaranteed - terms.guaranteed_bytes);
        let beside_others = common.max(terms.guaranteed_bytes.min(self.admissible()));
        let ceiling = terms.most_bytes.min(terms.most_job_bytes);
        let Oversize::RunAlone { most_bytes } = self.oversize else {
            return beside_others.min(ceiling);
        };
        if guaranteed > terms.guaranteed_bytes {
            return beside_others.min(ceiling);
        }
        let hard = if self.is_capacity_hard { self.capacity } else { u64::MAX };
        beside_others.max(most_bytes.min(hard)).min(ceiling)
    }

    pub(super) fn pass_time(&mut self, nanos: u64) {
        if !self.is_shared() {
            return;
        }
        for line in self.lines() {
            let held = self.held_by(line);
            let line = self.line_mut(line);
            line.used += held.use_in(nanos, &line.terms);
            let used = line.used;
            self.level = self.level.max(used);
        }
    }

    /// The job of a lane that has its turn, or is to have the next one.
    pub(super) fn next_in(&self, crew: usize, lane: usize) -> Option<&ModelJob> {
        let line = self.line(Some((crew, lane)));
        let its = |job: &&ModelJob| (job.crew, job.lane) == (crew, lane) && job.waits();
        let first = self.jobs.iter().find(its)?;
        let Some(after) = line.newest_first_after else { return Some(first) };
        let mut inside = self.jobs.iter().filter(its).filter(|job| job.at == At::Inside);
        if let Some(turn) = line.turn
            && let Some(job) = inside.clone().find(|job| job.id == turn.id)
        {
            return Some(job);
        }
        let has_turn = line.turn.is_some_and(|turn| turn.id == first.id);
        if !has_turn && self.now.since(first.since) > after {
            return inside.next_back().or(Some(first));
        }
        Some(first)
    }

    /// Ends jobs whose time to start is over.
    pub(super) fn expire(&mut self) -> bool {
        let mut any = false;
        for crew in self.crew_ids() {
            loop {
                let late =
                    |job: &&ModelJob| job.crew == crew && job.waits() && job.expires <= self.now;
                let late = self.jobs.iter().filter(late);
                let Some(job) = late.min_by_key(|job| (job.expires, job.lane, job.id)) else {
                    break;
                };
                any = true;
                let (id, at) = (job.id, job.at);
                if at == At::Outside {
                    self.refuse(id, Ended::Expired, Some(Verdict::Expired));
                } else {
                    self.end(id, Ended::Expired);
                    self.gone.push((id, Fate::Expired));
                }
                self.note_heads();
                self.move_in();
            }
        }
        any
    }

    /// Who waits first in a line, and what for, if the line may have it.
    fn head(&self, line: Option<(usize, usize)>) -> Option<(Id, u64)> {
        let Some((crew, lane)) = line else { return self.requests.first().copied() };
        let (id, need) = self.next_in(crew, lane).map(|job| (job.id, job.need))?;
        let (terms, held) = (self.line(line).terms, self.held_by(line));
        let has_bytes = need == 0 || held.bytes + need <= terms.most_bytes;
        (has_bytes && held.jobs < terms.most_workers).then_some((id, need))
    }

    /// Gives those who came to the head of a line their turn.
    pub(super) fn note_heads(&mut self) {
        let (lines, is_shared) = (self.lines(), self.is_shared());
        for line in lines {
            let (head, held) = (self.head(line).map(|(id, _)| id), self.held_by(line));
            let turn = self.line(line).turn;
            let wants = match line {
                Some((crew, lane)) => self.next_in(crew, lane).is_some(),
                None => !self.requests.is_empty(),
            };
            let begins = !std::mem::replace(&mut self.line_mut(line).wants, wants);
            if head == turn.map(|turn| turn.id) {
                continue;
            }
            let (level, last_use) = (self.level, self.last_use);
            let line = self.line_mut(line);
            if begins && is_shared && head.is_some() {
                line.used = line.used.max(level);
            }
            if !is_shared {
                line.turn = head.map(|id| Turn { used: last_use, id });
                continue;
            }
            let used = (line.used + held.use_in(100_000_000, &line.terms)).to_bits();
            line.turn = head.map(|id| Turn { used, id });
            if line.turn.is_some() {
                self.last_use = last_use.max(used);
            }
        }
    }

    fn claims(&self) -> Vec<ModelClaim> {
        let mut claims = Vec::new();
        for line in self.lines() {
            let (Some(turn), Some((_, need))) = (self.line(line).turn, self.head(line)) else {
                continue;
            };
            let mut has_worker = true;
            if let Some((crew, lane)) = line {
                let free = self.free_workers(crew);
                let promised = self.all_promised_workers(crew);
                let own = self.promised_workers(crew, lane);
                has_worker = free > promised || (free > 0 && own > 0);
            }
            let (promised, terms) = (self.promised(line), self.line(line).terms);
            let has_guarantee = terms.has_guarantee();
            claims.push(ModelClaim { turn, line, need, promised, has_guarantee, has_worker });
        }
        claims.retain(|claim| claim.has_worker);
        claims.sort_by_key(|claim| claim.turn);
        claims
    }

    /// Who is admitted next: the first, or if it does not fit, the first of those that take
    /// nothing but what is guaranteed to them.
    pub(super) fn next_claim(&mut self) -> Option<(Id, u64)> {
        let claims = self.claims();
        let free = self.admissible().saturating_sub(self.held());
        let common = |claim: &ModelClaim| free.saturating_sub(self.all_promised() - claim.promised);
        let is_there = |claim: &ModelClaim| claim.need == 0 || claim.need <= free;
        let first = claims.first()?;
        let fits = first.need <= first.promised || first.need <= common(first);
        let claim = if is_there(first) && (first.need == 0 || fits) {
            *first
        } else if first.need > self.admissible() {
            match self.is_idle() {
                true => *first,
                false => return self.pass(*first),
            }
        } else {
            let within = |claim: &&ModelClaim| claim.has_guarantee && claim.need <= claim.promised;
            let leaves_worker = |claim: &&ModelClaim| self.leaves_worker(claim.line, first.line);
            let may = |claim: &&ModelClaim| within(claim) && leaves_worker(claim);
            match claims.iter().find(|claim| may(claim) && is_there(claim)) {
                Some(claim) => *claim,
                None => return self.pass(*first),
            }
        };
        Some((claim.turn.id, claim.need))
    }

    /// Whether the first lane still finds a worker when the other has taken one.
    fn leaves_worker(&self, line: Option<(usize, usize)>, first: Option<(usize, usize)>) -> bool {
        let (Some((crew, lane)), Some((first_crew, first))) = (line, first) else { return true };
        if crew != first_crew {
            return true;
        }
        let own = self.promised_workers(crew, first);
        let taken_from_promised = usize::from(self.promised_workers(crew, lane) > 0);
        let free = self.free_workers(crew) - 1;
        free > self.all_promised_workers(crew) - taken_from_promised || (free > 0 && own > 0)
    }

    fn fits(&self, line: Option<(usize, usize)>, need: u64) -> bool {
        let free = self.admissible().saturating_sub(self.held());
        let own = self.promised(line);
        let common = free.saturating_sub(self.all_promised() - own);
        let alone = need > self.admissible() && self.is_idle();
        need == 0 || (need <= free && (need <= own || need <= common)) || alone
    }

    fn passed(&mut self, line: Option<(usize, usize)>, id: Id) -> &mut Passed {
        match line {
            Some(_) => &mut self.job_mut(id).passed,
            None => self.requests_passed.entry(id).or_default(),
        }
    }

    /// The first that fits behind one that does not, and may be passed.
    fn pass(&mut self, first: ModelClaim) -> Option<(Id, u64)> {
        let (overtaking, now) = (self.overtaking, self.now);
        if !self.passed(first.line, first.turn.id).may_be_once_more(&overtaking, now) {
            return None;
        }
        let mut lines = self.lines();
        lines.retain(|line| self.line(*line).turn.is_some());
        lines.sort_by_key(|line| self.line(*line).turn);
        for line in lines {
            let (head, need) = self.head(line).unwrap();
            let mut candidate = self.fits(line, need).then_some((head, need));
            if let Some((crew, lane)) = line {
                let promised = self.all_promised_workers(crew);
                if self.free_workers(crew) <= promised {
                    continue;
                }
                let in_order = self.line(line).newest_first_after.is_none();
                if in_order
                    && candidate.is_none()
                    && self.passed(line, head).may_be_once_more(&overtaking, now)
                {
                    let is_inside =
                        |job: &&ModelJob| (job.crew, job.lane, job.at) == (crew, lane, At::Inside);
                    let (held, most) = (self.held_by(line).bytes, self.line(line).terms.most_bytes);
                    let has_room = |need: u64| need == 0 || held + need <= most;
                    let mut behind = self.jobs.iter().filter(is_inside).take(WINDOW).skip(1);
                    candidate = behind
                        .find(|job| has_room(job.need) && self.fits(line, job.need))
                        .map(|job| (job.id, job.need));
                }
            }
            let Some((id, need)) = candidate else { continue };
            if let Some((crew, lane)) = line {
                let is_before = |job: &&mut ModelJob| {
                    (job.crew, job.lane, job.at) == (crew, lane, At::Inside) && job.id < id
                };
                self.jobs.iter_mut().filter(is_before).for_each(|job| job.passed.once_more(now));
                self.overtook.push(id);
            }
            if line != first.line {
                self.passed(first.line, first.turn.id).once_more(now);
            }
            return Some((id, need));
        }
        None
    }

    /// Whether a job in flight may hold more, as one that came last.
    pub(super) fn grow(&mut self, id: Id, bytes: u64) -> bool {
        let job = self.job_mut(id);
        let line = Some((job.crew, job.lane));
        let most = self.line(line).terms.most_bytes;
        let free = self.admissible().saturating_sub(self.held());
        if self.held_by(line).bytes + bytes > most || bytes > free && bytes > 0 {
            return false;
        }
        let first = self.claims().first().copied();
        if let Some(first) = first.filter(|_| bytes > self.promised(line)) {
            let (overtaking, now) = (self.overtaking, self.now);
            let passed = self.passed(first.line, first.turn.id);
            if !passed.may_be_once_more(&overtaking, now) || !self.fits(line, bytes) {
                return false;
            }
            self.passed(first.line, first.turn.id).once_more(now);
        } else if !self.fits(line, bytes) {
            return false;
        }
        self.job_mut(id).held += bytes;
        self.peak = self.peak.max(self.held());
        self.moved = self.now;
        self.note_heads();
        true
    }

    fn would_fit_beside_acquired(&self, first: &ModelClaim) -> bool {
        let acquired = self.permits.iter().filter(|permit| permit.of.is_none());
        let bytes: u64 = acquired.clone().map(|permit| permit.bytes).sum();
        let left = self.admissible().saturating_sub(bytes);
        let (own, all) = (self.line(first.line).terms.guaranteed_bytes, self.guaranteed());
        match first.need > self.admissible() {
            true => acquired.count() == 0,
            false => first.need <= left.saturating_sub(all - own).max(own.min(left)),
        }
    }

    /// Who is ended next because nothing moves: the first, or if nobody may claim anything, the
    /// one that has waited longest at the head of a lane.
    pub(super) fn next_stalled(&self) -> Option<(Option<(usize, usize)>, Id)> {
        let timeout = DEFAULT_TIMEOUT;
        if self.jobs_in_flight() > 0 || self.now.since(self.moved) < timeout {
            return None;
        }
        let mut heads = Vec::new();
        for line in self.lines() {
            let Some((crew, lane)) = line else { continue };
            let its = |job: &&ModelJob| (job.crew, job.lane) == (crew, lane) && job.waits();
            let head = self.jobs.iter().find(its);
            if self.free_workers(crew) > 0 && self.line(line).turn.is_none() {
                heads.extend(head.map(|job| (job.since, line, job.id)));
            }
        }
        let longest = || heads.iter().min_by_key(|head| head.0).copied();
        let claims = self.claims();
        let first = claims.first().filter(|first| self.would_fit_beside_acquired(first));
        let (since, line, id) = match first {
            Some(first) => {
                let id = first.turn.id;
                let job = self.jobs.iter().find(|job| job.id == id).map(|job| job.since);
                (job.unwrap_or_else(|| self.requests_since[&id]), first.line, id)
            }
            None => longest()?,
        };
        (self.now.since(since) >= timeout).then_some((line, id))
    }
}
