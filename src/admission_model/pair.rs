//! The state machine and the model side by side: every operation is done to both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::model::{
    At, Doing, End, Id, Model, ModelCrew, ModelJob, ModelLine, ModelPermit, Who, rank,
};
use super::op::{Op, Patience};
use crate::accounts::Terms;
use crate::admission::Admission;
use crate::answer::{Growth, LaneId, Offer, Refusal, Request, Slot, Ticket, Within};
use crate::bench::{Done, Grant};
use crate::cost::Cost;
use crate::counts::Ended;
use crate::crew::Crew;
use crate::effects::{Fate, Place, Verdict};
use crate::intake::Intake;
use crate::queue::{LanePlan, Passed};
use crate::sys::clock::Moment;

fn pick_at<T>(from: &[T], number: u8) -> Option<usize> {
    usize::from(number).checked_rem(from.len())
}

fn pick<T: Clone>(from: &[T], number: u8) -> Option<T> {
    pick_at(from, number).map(|at| from[at].clone())
}

fn at((crew, lane): (usize, usize)) -> LaneId {
    LaneId { crew, lane }
}

fn slot_of(crew: usize, grant: &Grant<Id>) -> Slot {
    Slot { crew, slot: grant.slot, seq: grant.seq }
}

#[derive(Debug)]
pub(super) struct Pair {
    pub(super) real: Admission<Id, Who>,
    pub(super) model: Model,
    pub(super) last_id: Id,
    pub(super) now: u64,
    /// The most passes that were ever allowed.
    pub(super) bound: u32,
    pub(super) tickets: Vec<(Id, Ticket)>,
    pub(super) requests: Vec<(Id, u64)>,
    pub(super) drains: Vec<(usize, Id, u64)>,
    pub(super) places: Vec<(Id, Place)>,
    pub(super) told: Vec<Who>,
    pub(super) held_before: u64,
    /// Of jobs that a worker has fetched.
    pub(super) slots: BTreeMap<Id, Slot>,
}

impl Pair {
    pub(super) fn new(capacity: u64, reserve: u64) -> Self {
        Pair {
            real: Admission::new(capacity, reserve),
            model: Model::new(capacity, reserve),
            last_id: 0,
            now: 0,
            bound: 0,
            tickets: Vec::new(),
            requests: Vec::new(),
            drains: Vec::new(),
            places: Vec::new(),
            told: Vec::new(),
            held_before: 0,
            slots: BTreeMap::new(),
        }
    }

    pub(super) fn apply(&mut self, op: &Op) {
        self.last_id += 1;
        self.apply_to_both(op, self.last_id);
        self.check();
    }

    /// Most tickets would soon be of jobs that wait no more, so each of those is used once.
    fn pick_ticket(&mut self, number: u8) -> Option<(Id, Ticket)> {
        let (id, ticket) = pick(&self.tickets, number)?;
        if !self.model.job_mut(id).waits() {
            self.tickets.retain(|(other, _)| *other != id);
        }
        Some((id, ticket))
    }

    /// A job that a worker has, or one that has ended, which is used once.
    fn pick_slot(&mut self, number: u8) -> Option<(Id, Slot)> {
        let slots: Vec<_> = self.slots.iter().map(|(id, slot)| (*id, *slot)).collect();
        let (id, slot) = pick(&slots, number)?;
        let job = self.model.jobs.iter().find(|job| job.id == id);
        if job.is_none_or(|job| job.at != At::Running) {
            self.slots.remove(&id);
        }
        job.is_some().then_some((id, slot))
    }

    fn apply_to_both(&mut self, op: &Op, id: Id) -> Option<()> {
        let (real, model) = (&mut self.real, &mut self.model);
        let crews = model.crew_ids();
        let open = |model: &Model| -> Vec<usize> {
            crews.iter().copied().filter(|crew| !model.crew(*crew).closed).collect()
        };
        match *op {
            Op::Attach { limit, ref lanes, workers } => self.attach(id, limit, lanes, workers),
            Op::PassTime(nanos) => {
                self.now += nanos;
                real.set_time(Moment::at(self.now));
                model.now = Moment::at(self.now);
                model.pass_time(nanos);
                if model.expire() {
                    model.settle();
                }
            }
            Op::AddLane { crew, jobs, terms, newest_first_after } => {
                let crew = pick(&crews, crew)?;
                let after = newest_first_after.map(Duration::from_nanos);
                self.add_lane(crew, jobs, terms, after);
            }
            Op::LetLaneGo(lane) => {
                let held = crews.iter().flat_map(|crew| {
                    let lanes = model.crew(*crew).lanes.iter();
                    let held = lanes.filter(|(_, lane)| lane.handles == Some(1));
                    held.map(|(lane, _)| LaneId { crew: *crew, lane: *lane })
                });
                // Who waits for a place holds the lane.
                let waits = |at: &LaneId| {
                    let jobs = model.jobs.iter().filter(|job| job.at == At::Outside);
                    jobs.map(|job| (job.crew, job.lane)).any(|lane| lane == (at.crew, at.lane))
                };
                let at = pick(&held.filter(|at| !waits(at)).collect::<Vec<_>>(), lane)?;
                real.let_lane_go(at);
                model.crew_mut(at.crew).lanes.get_mut(&at.lane).unwrap().handles = Some(0);
                model.settle();
            }
            Op::SetOvertaking(overtaking) => {
                real.set_overtaking(overtaking);
                model.overtaking = overtaking;
                self.bound = u32::max(self.bound, overtaking.most());
                model.settle();
            }
            Op::SetOversize { oversize, is_capacity_hard } => {
                real.set_oversize(oversize, is_capacity_hard);
                (model.oversize, model.is_capacity_hard) = (oversize, is_capacity_hard);
                model.evict_what_never_fits();
                model.settle();
            }
            Op::StartWorker(crew) => {
                let crew = pick(&open(model), crew)?;
                real.start_worker(crew);
                model.set_worker(crew, id * 10, Doing::Looking);
                model.settle();
            }
            Op::Detach(crew) => {
                let is_left = |crew: &usize| {
                    let mut jobs = model.jobs.iter().filter(|job| job.crew == *crew);
                    let mut permits = model.permits.iter().filter_map(|permit| permit.of);
                    model.crew(*crew).workers.is_empty()
                        && jobs.all(|job| job.at == At::Over)
                        && permits.all(|of| of.0 != *crew)
                };
                let crew = pick(&crews.iter().copied().filter(is_left).collect::<Vec<_>>(), crew)?;
                real.detach(crew);
                model.crews[crew] = None;
                model.jobs.retain(|job| job.crew != crew);
                self.tickets.retain(|(_, ticket)| ticket.at.crew != crew);
                self.drains.retain(|drain| drain.0 != crew);
                model.settle();
            }
            Op::Offer { crew, lane, working, input, patience, within } => {
                let crew = pick(&crews, crew)?;
                let lanes = model.crew(crew).lanes.iter();
                let held = lanes.filter(|(_, lane)| lane.handles != Some(0));
                let lanes: Vec<usize> = held.map(|(lane, _)| *lane).collect();
                let lane = pick(&lanes, lane)?;
                let cost = Cost::new(working).input(input);
                self.offer(id, LaneId { crew, lane }, cost, patience, within);
            }
            Op::Withdraw(job) => {
                let (id, ticket) = self.pick_ticket(job)?;
                self.withdraw(id, ticket);
            }
            Op::Cancel(job) => {
                let (id, ticket) = self.pick_ticket(job)?;
                self.cancel(id, ticket);
            }
            Op::Left(job) => {
                let (id, place) = pick(&self.places, job)?;
                self.places.retain(|(other, _)| *other != id);
                if model.job_mut(id).at == At::Ending {
                    model.moved = model.now;
                }
                real.left(place);
                real.ended(place.at().crew);
                model.job_mut(id).at = At::Over;
                model.settle();
            }
            Op::Work { worker, ended, stays_awake } => {
                let (crew, worker, doing) = pick(&self.workers_on_their_feet(), worker)?;
                self.work(crew, worker, doing, ended, stays_awake);
            }
            Op::Close(crew) => {
                let crew = pick(&crews, crew)?;
                real.close(crew);
                model.crew_mut(crew).closed = true;
                for id in model.jobs_at(|job| job.crew == crew && job.at == At::Outside) {
                    model.refuse(id, End::Closed, Some(Verdict::Closed));
                }
                model.settle();
            }
            Op::Abort(crew) => {
                let crew = pick(&crews, crew)?;
                let inside = model.jobs_at(|job| job.crew == crew && job.at == At::Inside);
                assert_eq!(real.abort_waiting(crew), inside.len());
                for id in inside {
                    model.end(id, End::Aborted);
                    model.gone.push((id, Fate::Aborted));
                }
                model.settle();
            }
            Op::WaitForEnd(crew) => {
                let crew = pick(&crews, crew)?;
                let seq = real.wait_for_end(crew, Who::Drainer { crew, id });
                let must_wait = !model.crew(crew).workers.is_empty();
                assert_eq!(seq.is_some(), must_wait);
                self.drains.push((crew, id, seq?));
                model.crew_mut(crew).drainers.push(id);
            }
            Op::StopWaitingForEnd(drain) => {
                let (crew, id, seq) = pick(&self.drains, drain)?;
                real.stop_waiting_for_end(crew, seq);
                model.crew_mut(crew).drainers.retain(|other| *other != id);
            }
            Op::Request { bytes, waits } => self.request(id, bytes, waits),
            Op::WithdrawRequest(request) => {
                let (id, seq) = pick(&self.requests, request)?;
                let waited = model.requests.iter().any(|(other, _)| *other == id);
                assert_eq!(real.withdraw_request(seq), waited);
                if waited {
                    model.requests.retain(|(other, _)| *other != id);
                    model.settle();
                }
            }
            Op::Release(permit) => {
                let permit = pick_at(&model.permits, permit)?;
                let ModelPermit { of, bytes } = model.permits.remove(permit);
                real.release(of.map(at), bytes, true);
                model.moved = model.now;
                model.settle();
            }
            Op::Shrink(permit, bytes) => {
                let permit = pick_at(&model.permits, permit)?;
                let bytes = bytes.min(model.permits[permit].bytes);
                real.release(model.permits[permit].of.map(at), bytes, false);
                model.permits[permit].bytes -= bytes;
                model.moved = model.now;
                model.settle();
            }
            Op::Split(permit, bytes) => {
                let permit = pick_at(&model.permits, permit)?;
                let ModelPermit { of, bytes: all } = model.permits[permit];
                let bytes = bytes.min(all);
                real.divide_permit(of.map(at));
                model.permits[permit].bytes -= bytes;
                model.permits.push(ModelPermit { of, bytes });
                model.moved = model.now;
            }
            Op::Keep(job, bytes) => {
                let (id, slot) = self.pick_slot(job)?;
                let (real, model) = (&mut self.real, &mut self.model);
                let now = model.now;
                let job = model.job_mut(id);
                let of = (job.crew, job.lane);
                let kept = real.keep(slot, bytes);
                if !matches!(job.at, At::Ready(_) | At::Running) {
                    assert_eq!(kept, None);
                } else if bytes > job.held {
                    assert_eq!(kept, Some(Err(job.held)));
                } else {
                    assert_eq!(kept, Some(Ok(at(of))));
                    job.held -= bytes;
                    model.permits.push(ModelPermit { of: Some(of), bytes });
                    model.moved = now;
                }
            }
            Op::Within(parent, job) => {
                let (_, slot) = self.pick_slot(parent)?;
                let (id, ticket) = self.pick_ticket(job)?;
                self.run_within(slot, id, ticket);
            }
            Op::Grow(job, bytes) => {
                let (id, slot) = self.pick_slot(job)?;
                let (real, model) = (&mut self.real, &mut self.model);
                let growth = real.grow(slot, bytes);
                let job = model.job_mut(id);
                let (of, held_bytes) = ((job.crew, job.lane), job.held);
                if !matches!(job.at, At::Ready(_) | At::Running) {
                    assert_eq!(growth, Growth::Ended);
                    return None;
                }
                let admissible_bytes = model.largest(Some(of));
                if held_bytes + bytes > admissible_bytes {
                    assert_eq!(growth, Growth::NeverFits { held_bytes, admissible_bytes });
                } else {
                    let free_bytes = model.admissible().saturating_sub(model.held());
                    let grows = model.grow(id, bytes);
                    let not_now = Growth::NotNow { free_bytes };
                    assert_eq!(growth, if grows { Growth::Granted } else { not_now });
                }
            }
            Op::Look => {
                real.end_what_is_stalled();
                while let Some((line, id)) = model.next_stalled() {
                    if line.is_none() {
                        model.requests.retain(|(other, _)| *other != id);
                        model.told.push((Who::Acquirer(id), Verdict::Stalled));
                    } else if model.job_mut(id).at == At::Outside {
                        model.refuse(id, End::Stalled, Some(Verdict::Stalled));
                    } else {
                        let needed_bytes = model.job_mut(id).need;
                        model.end(id, End::Stalled);
                        model
                            .gone
                            .push((id, Fate::Stalled { needed_bytes, ledger: model.ledger() }));
                    }
                    model.settle();
                }
            }
            Op::Resize { capacity, reserve } => {
                real.resize(capacity, reserve);
                (model.capacity, model.reserve) = (capacity, reserve);
                model.evict_what_never_fits();
                model.settle();
            }
        }
        Some(())
    }

    fn attach(&mut self, id: Id, limit: u64, lanes: &[(usize, u64, Terms)], workers: u8) {
        let (real, model) = (&mut self.real, &mut self.model);
        let plan = lanes.iter().map(|(limit_jobs, limit_input_bytes, terms)| LanePlan {
            name: "".into(),
            limit_jobs: *limit_jobs,
            limit_input_bytes: *limit_input_bytes,
            terms: *terms,
            newest_first_after: None,
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
            real.start_worker(slot);
            model.set_worker(slot, id * 10 + Id::from(worker), Doing::Looking);
            model.settle();
        }
    }

    fn add_lane(
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

    fn offer(&mut self, id: Id, at: LaneId, cost: Cost, patience: Patience, within: Option<u64>) {
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
            ran_within: false,
            at: At::Over,
            end: None,
            passed: Passed::default(),
        });
        if model.crew(crew).closed {
            assert!(matches!(offer, Offer::Refused(Refusal::Closed)));
            model.refuse(id, End::Closed, None);
            return;
        }
        if !fits {
            let refusal = Refusal::NeverFits { admissible_bytes };
            assert!(matches!(offer, Offer::Refused(why) if why == refusal), "{offer:?}");
            model.refuse(id, End::NeverFits, None);
            return;
        }
        if expires <= since {
            assert!(matches!(offer, Offer::Refused(Refusal::Expired)), "{offer:?}");
            model.refuse(id, End::Expired, None);
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
            Patience::Wait | Patience::OnCredit => real.wait(ticket, submitter),
            Patience::Try => {
                let refusal = Refusal::Full(model.limit_met(crew, lane));
                assert_eq!(real.withdraw(ticket), Some(refusal));
                model.refuse(id, End::Full, None);
            }
            Patience::OwnWorker => {
                let refusal = real.withdraw_from_own_worker(ticket);
                assert_eq!(refusal, Some(Refusal::OwnWorker));
                model.refuse(id, End::OwnWorker, None);
            }
        }
        model.settle();
    }

    fn withdraw(&mut self, id: Id, ticket: Ticket) {
        let (real, model) = (&mut self.real, &mut self.model);
        let refusal = real.withdraw(ticket);
        if model.job_mut(id).at != At::Outside {
            assert_eq!(refusal, None);
            return;
        }
        let limit = model.limit_met(ticket.at.crew, ticket.at.lane);
        assert_eq!(refusal, Some(Refusal::Full(limit)));
        model.refuse(id, End::Full, None);
        model.settle();
    }

    fn cancel(&mut self, id: Id, ticket: Ticket) {
        let (real, model) = (&mut self.real, &mut self.model);
        let is_unstarted = matches!(model.job_mut(id).at, At::Inside | At::Ready(_));
        assert_eq!(real.cancel(ticket), is_unstarted);
        if is_unstarted {
            model.end(id, End::Cancelled);
            model.gone.push((id, Fate::Cancelled));
            model.settle();
        }
    }

    fn run_within(&mut self, slot: Slot, id: Id, ticket: Ticket) {
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
        real.end_within(ticket.at, input, Ended::Completed, Duration::from_nanos(id));
        let job = model.job_mut(id);
        job.ran_within = true;
        (job.at, job.end) = (At::Over, Some(End::Ran(Ended::Completed)));
        model.settle();
    }

    fn request(&mut self, id: Id, bytes: u64, waits: bool) {
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
            assert_eq!(request, Request::Granted);
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
    fn work(&mut self, crew: usize, worker: Id, doing: Doing, ended: Ended, stays_awake: bool) {
        let (real, model) = (&mut self.real, &mut self.model);
        if let Doing::Running(id) = doing {
            let job = model.job_mut(id);
            let waited = Duration::from_nanos(id);
            let slot = self.slots[&id].slot;
            let grant = real.finish(crew, Done { slot, ended, waited });
            self.slots.extend(grant.iter().map(|grant| (grant.job, slot_of(crew, grant))));
            let grant = grant.map(|grant| (grant.job, grant.lane, grant.bytes));
            let _ = job;
            model.end(id, End::Ran(ended));
            model.moved = model.now;
            assert_eq!(grant, model.finish(crew, worker), "who is handed out next");
            return;
        }
        if doing == Doing::Told {
            real.arrive(crew);
            model.set_worker(crew, worker, Doing::Looking);
        }
        let grant = real.take(crew);
        self.slots.extend(grant.iter().map(|grant| (grant.job, slot_of(crew, grant))));
        let grant = grant.map(|grant| (grant.job, grant.lane, grant.bytes));
        assert_eq!(grant, model.take(crew, worker), "who is handed out first");
        if grant.is_some() {
            return;
        }
        let leaves = real.may_leave(crew);
        assert_eq!(leaves, model.may_leave(crew, worker));
        if !leaves && stays_awake {
            real.stay_awake(crew);
            model.set_worker(crew, worker, Doing::Told);
        } else if !leaves {
            real.bench(crew, Who::Worker { crew, id: worker }, rank(worker));
            model.set_worker(crew, worker, Doing::Benched);
            model.rouse();
        }
    }
}
