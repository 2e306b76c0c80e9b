//! Operations that take more than a few lines on either side.

use std::time::Duration;

use super::model::{At, Doing, Id, ModelCrew, ModelJob, ModelLine, Who, rank};
use super::op::Patience;
use super::pair::{Pair, slot_of};
use crate::accounts::Terms;
use crate::answer::{LaneId, Offer, Refusal, Request, Slot, Ticket, Within};
use crate::bench::Done;
use crate::cost::Cost;
use crate::counts::Ended;
use crate::crew::Crew;
use crate::effects::Fate;
use crate::intake::Intake;
use crate::queue::{LanePlan, Passed};
use crate::sys::clock::Moment;

impl Pair {
    pub(super) fn attach(
        &mut self,
        id: Id,
        limit: u64,
        lanes: &[(usize, u64, Terms)],
        workers: u8,
    ) {
        let (real, model) = (&mut self.real, &mut self.model);
        let plan = lanes.iter().map(|(limit_jobs, limit_input_bytes, terms)| LanePlan {
            name: "".into(),
            limit_jobs: *limit_jobs,
            limit_input_bytes: *limit_input_bytes,
            terms: *terms,
            newest_first_after: None,
            told_together: *limit_jobs,
        });
        let attached = real.attach(Crew::new(limit), plan.collect());
        if attached.is_ok() {
            real.stay();
        }
        let free = model.admissible().saturating_sub(model.held() + model.all_promised());
        let guaranteed: u64 = lanes.iter().map(|(_, _, terms)| terms.guaranteed_bytes).sum();
        if limit + guaranteed > free {
            assert_eq!(attached, Err(free));
            return;
        }
        let slot = model.crews.iter().position(Option::is_none);
        let slot = slot.unwrap_or_else(|| {
            model.crews.push(None);
            model.crews.len() - 1
        });
        assert_eq!(attached, Ok(slot));
        model.crews[slot] = Some(ModelCrew {
            limit,
            lanes: lanes
                .iter()
                .map(|(jobs, bytes, terms)| ModelLine::new(*jobs, *bytes, *terms))
                .enumerate()
                .collect(),
            workers: Vec::new(),
            drainers: Vec::new(),
            closed: false,
            gave_limit_back: false,
        });
        model.evict_what_never_fits();
        model.settle();
        for worker in 0..workers {
            let worker = id * 10 + Id::from(worker);
            real.start_worker(slot, rank(worker));
            model.set_worker(slot, worker, Doing::Looking);
            model.settle();
        }
    }

    pub(super) fn add_lane(
        &mut self,
        crew: usize,
        jobs: usize,
        terms: Terms,
        newest_first_after: Option<Duration>,
    ) {
        let (real, model) = (&mut self.real, &mut self.model);
        let name = format!("{}", self.last_id);
        let limit = model.crew(crew).limit;
        let plan = LanePlan {
            name: name.as_str().into(),
            limit_jobs: jobs,
            limit_input_bytes: limit,
            terms,
            newest_first_after,
            told_together: 1,
        };
        let added = real.add_lane(crew, plan);
        // As the gate does, in the same step.
        real.give_credit(&mut Intake::new(), None);
        let lanes = model.lines();
        let guaranteed: u64 =
            lanes.iter().map(|line| model.line(*line).terms.guaranteed_bytes).sum();
        let lanes = model.crew(crew).lanes.values();
        let workers: usize = lanes.map(|lane| lane.terms.guaranteed_workers).sum();
        let workers = workers + terms.guaranteed_workers;
        let has_workers = terms.guaranteed_workers == 0 || workers < model.crew(crew).workers.len();
        let has_bytes = guaranteed + terms.guaranteed_bytes <= model.admissible();
        let has_bytes = has_bytes || terms.guaranteed_bytes == 0;
        if model.crew(crew).closed || !has_workers || !has_bytes {
            assert!(added.is_err(), "{added:?}");
            return;
        }
        let mut line = ModelLine::new(jobs, limit, terms);
        line.handles = Some(1);
        line.newest_first_after = newest_first_after;
        assert!(model.crew_mut(crew).lanes.insert(added.unwrap(), line).is_none());
        model.evict_what_never_fits();
        model.settle();
    }

    pub(super) fn offer(
        &mut self,
        id: Id,
        at: LaneId,
        cost: Cost,
        patience: Patience,
        within: Option<u64>,
    ) {
        let (real, model) = (&mut self.real, &mut self.model);
        let LaneId { crew, lane } = at;
        let mut intake = Intake::new();
        real.give_credit(&mut intake, Some(at));
        let on_credit = patience == Patience::OnCredit;
        let since = model.now;
        let expires = within.map_or(Moment::NEVER, |n| since.after(Duration::from_nanos(n)));
        let on_credit = on_credit && expires > since;
        let taken_in = on_credit.then(|| intake.accept(at, cost, since, expires, id));
        let offer = if let Some(Ok(ticket)) = taken_in {
            real.receive(&mut intake);
            Offer::Accepted(ticket)
        } else {
            real.offer(at, cost, since, expires, id)
        };
        let (working, input) = (cost.working_bytes(), cost.input_bytes());
        let need = working.checked_add(input);
        let admissible_bytes = model.largest(Some((crew, lane)));
        let fits = need.is_some_and(|need| need <= admissible_bytes);
        let need = need.unwrap_or(0);
        model.jobs.push(ModelJob {
            id,
            crew,
            lane,
            need,
            input,
            held: 0,
            since,
            expires,
            came_after: model.admitted,
            admitted_as: None,
            has_guaranteed_worker: false,
            at: At::Over,
            end: None,
            passed: Passed::default(),
        });
        if model.crew(crew).closed {
            assert!(matches!(offer, Offer::Refused(Refusal::Closed)));
            model.refuse(id, Ended::RefusedClosed, None);
            return;
        }
        if !fits {
            let refusal = Refusal::NeverFits { admissible_bytes };
            assert!(matches!(offer, Offer::Refused(why) if why == refusal), "{offer:?}");
            model.refuse(id, Ended::RefusedNeverFits, None);
            return;
        }
        if expires <= since {
            assert!(matches!(offer, Offer::Refused(Refusal::Expired)), "{offer:?}");
            model.refuse(id, Ended::Expired, None);
            return;
        }
        model.job_mut(id).at = At::Outside;
        model.settle();
        let submitter = model.job_mut(id).submitter();
        // Whoever gets a place at once need not be told.
        model.told.retain(|(who, _)| *who != submitter);
        if model.job_mut(id).at != At::Outside {
            let Offer::Accepted(ticket) = offer else { panic!("{offer:?}") };
            self.tickets.push((id, ticket));
            return;
        }
        let Offer::Outside(ticket) = offer else { panic!("{offer:?}") };
        self.tickets.push((id, ticket));
        match patience {
            Patience::Wait | Patience::OnCredit => {
                real.wait(ticket, submitter, id.is_multiple_of(2));
            }
            Patience::Try => {
                let refusal = Refusal::Full(model.limit_met(crew, lane));
                assert_eq!(real.withdraw(ticket), Some(refusal));
                model.refuse(id, Ended::RefusedFull, None);
            }
            Patience::OwnWorker => {
                let refusal = real.withdraw_from_own_worker(ticket);
                assert_eq!(refusal, Some(Refusal::OwnWorker));
                model.refuse(id, Ended::RefusedOwnWorker, None);
            }
        }
        model.settle();
    }

    pub(super) fn withdraw(&mut self, id: Id, ticket: Ticket) {
        let (real, model) = (&mut self.real, &mut self.model);
        let refusal = real.withdraw(ticket);
        if model.job_mut(id).at != At::Outside {
            assert_eq!(refusal, None);
            return;
        }
        let limit = model.limit_met(ticket.at.crew, ticket.at.lane);
        assert_eq!(refusal, Some(Refusal::Full(limit)));
        model.refuse(id, Ended::RefusedFull, None);
        model.settle();
    }

    pub(super) fn cancel(&mut self, id: Id, ticket: Ticket) {
        let (real, model) = (&mut self.real, &mut self.model);
        let is_unstarted = matches!(model.job_mut(id).at, At::Inside | At::Ready(_));
        assert_eq!(real.cancel(ticket), is_unstarted);
        if is_unstarted {
            model.end(id, Ended::Cancelled);
            model.gone.push((id, Fate::Cancelled));
            model.settle();
        }
    }

    pub(super) fn run_within(&mut self, slot: Slot, id: Id, ticket: Ticket) {
        let (real, model) = (&mut self.real, &mut self.model);
        let held_bytes = real.held_by(slot).unwrap_or(0);
        let within = real.begin_within(ticket, held_bytes);
        let job = model.job_mut(id);
        let (need, input) = (job.need, job.input);
        if job.at != At::Inside {
            assert!(matches!(within, Within::Elsewhere), "{within:?}");
            return;
        }
        if need > held_bytes {
            assert!(matches!(within, Within::Above { needed_bytes } if needed_bytes == need));
            return;
        }
        let Within::Runs { job: run, input_bytes, .. } = within else { panic!("{within:?}") };
        assert_eq!((run, input_bytes), (id, input));
        model.job_mut(id).at = At::Leaving;
        model.settle();
        self.check();
        let (real, model) = (&mut self.real, &mut self.model);
        real.end_within(
            ticket.at,
            input,
            Ended::Completed,
            Duration::from_nanos(id),
            Some(Duration::from_nanos(id)),
        );
        let job = model.job_mut(id);
        (job.at, job.end) = (At::Over, Some(Ended::Completed));
        model.settle();
    }

    pub(super) fn request(&mut self, id: Id, bytes: u64, waits: bool) {
        let (real, model) = (&mut self.real, &mut self.model);
        let request = real.request(bytes);
        let admissible_bytes = model.largest(None);
        if bytes > admissible_bytes {
            assert_eq!(request, Request::NeverFits { admissible_bytes });
            return;
        }
        model.requests.push((id, bytes));
        model.requests_since.insert(id, model.now);
        model.settle();
        model.told.retain(|(who, _)| *who != Who::Acquirer(id));
        if model.requests.iter().all(|(other, _)| *other != id) {
            let Request::Granted { seq } = request else { panic!("{request:?}") };
            self.requests.push((id, seq));
            return;
        }
        let Request::Waiting { seq } = request else { panic!("{request:?}") };
        self.requests.push((id, seq));
        if waits {
            real.wait_for_bytes(seq, Who::Acquirer(id));
        } else {
            assert!(real.withdraw_request(seq));
            model.requests.retain(|(other, _)| *other != id);
            model.settle();
        }
    }

    pub(super) fn workers_on_their_feet(&self) -> Vec<(usize, Id, Doing)> {
        let mut workers = Vec::new();
        for crew in self.model.crew_ids() {
            let crew_workers = self.model.crew(crew).workers.iter();
            workers.extend(crew_workers.map(|(id, doing)| (crew, *id, *doing)));
        }
        workers.retain(|(_, _, doing)| *doing != Doing::Benched);
        workers
    }

    /// What a worker does under one lock, as in `worker.rs`.
    pub(super) fn work(
        &mut self,
        crew: usize,
        worker: Id,
        doing: Doing,
        ended: Ended,
        stays_awake: bool,
    ) {
        let (real, model) = (&mut self.real, &mut self.model);
        if let Doing::Running(id) = doing {
            let waited = Duration::from_nanos(id);
            let slot = self.slots[&id].slot;
            let grant =
                real.finish(crew, rank(worker), Done { slot, ended, waited, ran: Some(waited) });
            self.slots.extend(grant.iter().map(|grant| (grant.job, slot_of(crew, grant))));
            let grant = grant.map(|grant| (grant.job, grant.lane, grant.bytes));
            model.end(id, ended);
            model.moved = model.now;
            assert_eq!(grant, model.finish(crew, worker), "who is handed out next");
            return;
        }
        if doing == Doing::Told {
            real.arrive(crew, rank(worker));
            model.set_worker(crew, worker, Doing::Looking);
        }
        let grant = real.take(crew, rank(worker));
        self.slots.extend(grant.iter().map(|grant| (grant.job, slot_of(crew, grant))));
        let grant = grant.map(|grant| (grant.job, grant.lane, grant.bytes));
        assert_eq!(grant, model.take(crew, worker), "who is handed out first");
        if grant.is_some() {
            return;
        }
        let leaves = real.may_leave(crew, rank(worker));
        assert_eq!(leaves, model.may_leave(crew, worker));
        if !leaves && stays_awake {
            real.stay_awake(crew, rank(worker));
            model.set_worker(crew, worker, Doing::Told);
        } else if !leaves {
            real.bench(crew, Who::Worker { crew, id: worker }, rank(worker));
            model.set_worker(crew, worker, Doing::Benched);
            model.rouse();
        }
    }
}
