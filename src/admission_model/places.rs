//! Places that are reserved, on either side.

use std::time::Duration;

use super::model::{At, Id, ModelJob};
use super::pair::Pair;
use crate::answer::{LaneId, Offer, Refusal, Ticket};
use crate::cost::Cost;
use crate::counts::Ended;
use crate::error::Limit;
use crate::queue::Passed;
use crate::sys::clock::Moment;

fn count_as(refusal: Refusal) -> Ended {
    match refusal {
        Refusal::Closed => Ended::RefusedClosed,
        Refusal::NeverFits { .. } | Refusal::InputAbove { .. } => Ended::RefusedNeverFits,
        Refusal::Expired => Ended::Expired,
        Refusal::Full(_) => Ended::RefusedFull,
        Refusal::OwnWorker => Ended::RefusedOwnWorker,
    }
}

impl Pair {
    pub(super) fn reserved(&self) -> Vec<(Id, Ticket)> {
        self.reserved_places.clone()
    }

    fn leave_reserved(&mut self, id: Id) {
        self.reserved_places.retain(|(other, _)| *other != id);
    }

    /// Why a job of this cost may not wait there, not counting that there may be no room now.
    fn refusal(&self, at: LaneId, cost: Cost, expires: Moment) -> Option<Refusal> {
        let model = &self.model;
        let admissible_bytes = model.largest(Some((at.crew, at.lane)));
        let need = cost.total_bytes();
        if model.crew(at.crew).closed {
            Some(Refusal::Closed)
        } else if need.is_none_or(|need| need > admissible_bytes) {
            Some(Refusal::NeverFits { admissible_bytes })
        } else if expires <= model.now {
            Some(Refusal::Expired)
        } else {
            None
        }
    }

    fn above(&self, at: LaneId, cost: Cost) -> Option<Refusal> {
        let crew = self.model.crew(at.crew);
        let limit_bytes = crew.lanes[&at.lane].limit_bytes.min(crew.limit);
        (cost.input_bytes() > limit_bytes).then_some(Refusal::InputAbove { limit_bytes })
    }

    /// Which limit so many bytes more would meet. Only those of the executor are given out by age.
    fn bytes_met(&self, at: LaneId, id: Id, input_bytes: u64) -> Option<Limit> {
        let (model, crew) = (&self.model, self.model.crew(at.crew));
        let (_, waiting_bytes) = model.inside(at.crew, Some(at.lane));
        let limit_bytes = crew.lanes[&at.lane].limit_bytes;
        if input_bytes == 0 {
            return None;
        }
        if waiting_bytes + input_bytes > limit_bytes {
            return Some(Limit::LaneInputBytes { input_bytes, waiting_bytes, limit_bytes });
        }
        // The first outside of a lane which has room there waits for the executor's bytes alone.
        let mut firsts = crew.lanes.keys().filter_map(|lane| {
            let its = |job: &&ModelJob| (job.crew, job.lane) == (at.crew, *lane);
            let first = model.jobs.iter().filter(its).find(|job| job.at == At::Outside)?;
            let (jobs, bytes) = model.inside(at.crew, Some(*lane));
            let line = &crew.lanes[lane];
            let has_room = jobs < line.limit_jobs && bytes + first.input <= line.limit_bytes;
            (has_room && first.input > 0).then_some(first.id)
        });
        let older_waits = firsts.any(|first| first < id);
        let (_, waiting_bytes) = model.inside(at.crew, None);
        let limit_bytes = crew.limit;
        let is_above = waiting_bytes + input_bytes > limit_bytes;
        (is_above || older_waits).then_some(Limit::WaitingBytes {
            input_bytes,
            waiting_bytes,
            limit_bytes,
        })
    }

    pub(super) fn reserve(&mut self, id: Id, at: LaneId, cost: Cost, within: Option<u64>) {
        let since = self.model.now;
        let expires = within.map_or(Moment::NEVER, |n| since.after(Duration::from_nanos(n)));
        let reserved = self.real.reserve(at, cost, expires);
        let outside =
            |job: &ModelJob| (job.crew, job.lane, job.at) == (at.crew, at.lane, At::Outside);
        let refusal = self.refusal(at, cost, expires).or_else(|| self.above(at, cost));
        let refusal = refusal.or_else(|| {
            let (waiting, _) = self.model.inside(at.crew, Some(at.lane));
            let limit = self.model.crew(at.crew).lanes[&at.lane].limit_jobs;
            let met = if self.model.jobs.iter().any(outside) {
                Some(self.model.limit_met(at.crew, at.lane))
            } else if waiting >= limit {
                Some(Limit::LaneJobs { waiting, limit })
            } else {
                self.bytes_met(at, id, cost.input_bytes())
            };
            met.map(Refusal::Full)
        });
        let model = &mut self.model;
        model.jobs.push(ModelJob {
            id,
            crew: at.crew,
            lane: at.lane,
            need: cost.total_bytes().unwrap_or(0),
            input: cost.input_bytes(),
            held: 0,
            since,
            expires,
            came_after: 0,
            admitted_as: None,
            has_guaranteed_worker: false,
            at: At::Over,
            end: None,
            passed: Passed::default(),
        });
        match refusal {
            Some(refusal) => {
                assert_eq!(reserved, Err(refusal));
                model.job_mut(id).end = Some(count_as(refusal));
            }
            None => {
                let seq = reserved.expect("there is room");
                model.job_mut(id).at = At::Reserved;
                self.reserved_places.push((id, Ticket { at, seq }));
            }
        }
    }

    fn cost_of(&mut self, id: Id) -> Cost {
        let job = self.model.job_mut(id);
        Cost::new(job.need - job.input).input(job.input)
    }

    pub(super) fn declare(&mut self, id: Id, place: Ticket, cost: Cost) {
        let before = self.cost_of(id);
        let changed = self.real.change_reserved(place, before, cost);
        let at = place.at;
        let refusal = self.refusal(at, cost, Moment::NEVER).or_else(|| self.above(at, cost));
        let more_bytes = cost.input_bytes().saturating_sub(before.input_bytes());
        let refusal = refusal.or_else(|| self.bytes_met(at, id, more_bytes).map(Refusal::Full));
        assert_eq!(changed, refusal.map_or(Ok(()), Err));
        if refusal.is_none() {
            let job = self.model.job_mut(id);
            job.input = cost.input_bytes();
            job.need = cost.total_bytes().unwrap();
            self.model.settle();
        }
    }

    pub(super) fn enter_reserved(&mut self, id: Id, place: Ticket) {
        let cost = self.cost_of(id);
        let job = self.model.job_mut(id);
        let (since, expires) = (job.since, job.expires);
        let offer = self.real.enter_reserved(place, cost, since, expires, id);
        self.leave_reserved(id);
        if let Some(refusal) = self.refusal(place.at, cost, expires) {
            assert!(matches!(offer, Offer::Refused(why) if why == refusal), "{offer:?}");
            self.model.refuse(id, count_as(refusal), None);
            self.model.settle();
            return;
        }
        let Offer::Accepted(ticket) = offer else { panic!("{offer:?}") };
        self.tickets.push((id, ticket));
        let model = &mut self.model;
        let its = |job: &&ModelJob| (job.crew, job.lane) == (place.at.crew, place.at.lane);
        let mut inside = model.jobs.iter().filter(its).filter(|job| job.at == At::Inside);
        let passed = inside.find(|job| job.id > id).map(|job| job.passed);
        let admitted = model.admitted;
        let job = model.job_mut(id);
        job.at = At::Inside;
        job.came_after = admitted;
        job.passed = passed.unwrap_or_default();
        model.settle();
    }

    pub(super) fn give_up_reserved(&mut self, id: Id, place: Ticket) {
        let cost = self.cost_of(id);
        self.real.give_up_reserved(place.at, cost);
        self.leave_reserved(id);
        self.model.job_mut(id).at = At::Over;
        self.model.settle();
    }
}
