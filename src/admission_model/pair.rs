//! The state machine and the model side by side: every operation is done to both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::model::{At, Doing, Id, Model, ModelJob, ModelPermit, Name, Who, rank};
use super::op::Op;
use crate::admission::Admission;
use crate::answer::{Growth, LaneId, Slot, Ticket};
use crate::bench::Grant;
use crate::cost::Cost;
use crate::counts::Ended;
use crate::effects::{Fate, Place, Verdict};
use crate::sys::clock::Moment;

fn pick_at<T>(from: &[T], number: u8) -> Option<usize> {
    usize::from(number).checked_rem(from.len())
}

fn pick<T: Clone>(from: &[T], number: u8) -> Option<T> {
    pick_at(from, number).map(|at| from[at].clone())
}

fn number_of(permit: &ModelPermit, requests: &[(Id, u64)]) -> u64 {
    match permit.name {
        Name::Number(number) => number,
        Name::Request(id) => {
            let request = requests.iter().find(|(other, _)| *other == id);
            request.expect("it was granted").1
        }
    }
}

pub(super) fn slot_of(crew: usize, grant: &Grant<Id>) -> Slot {
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
    /// Of jobs that have not come.
    pub(super) reserved_places: Vec<(Id, Ticket)>,
    pub(super) requests: Vec<(Id, u64)>,
    pub(super) drains: Vec<(usize, Id, u64)>,
    pub(super) places: Vec<(Id, Place)>,
    pub(super) told: Vec<Who>,
    /// Submitters that have their places and have not been told.
    pub(super) placed: Vec<Who>,
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
            reserved_places: Vec::new(),
            requests: Vec::new(),
            drains: Vec::new(),
            places: Vec::new(),
            told: Vec::new(),
            placed: Vec::new(),
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
                // Who waits for a place, or has one, holds the lane.
                let waits = |at: &LaneId| {
                    let is_outside = |job: &&ModelJob| matches!(job.at, At::Outside | At::Reserved);
                    let jobs = model.jobs.iter().filter(is_outside);
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
                real.start_worker(crew, rank(id * 10));
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
            Op::Reserve { crew, lane, working, input, within } => {
                let crew = pick(&crews, crew)?;
                let lanes = model.crew(crew).lanes.iter();
                let held = lanes.filter(|(_, lane)| lane.handles != Some(0));
                let lanes: Vec<usize> = held.map(|(lane, _)| *lane).collect();
                let lane = pick(&lanes, lane)?;
                self.reserve(id, LaneId { crew, lane }, Cost::new(working).input(input), within);
            }
            Op::Declare(place, working, input) => {
                let (id, ticket) = pick(&self.reserved(), place)?;
                self.declare(id, ticket, Cost::new(working).input(input));
            }
            Op::EnterReserved(place) => {
                let (id, ticket) = pick(&self.reserved(), place)?;
                self.enter_reserved(id, ticket);
            }
            Op::GiveUpReserved(place) => {
                let (id, ticket) = pick(&self.reserved(), place)?;
                self.give_up_reserved(id, ticket);
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
                    model.refuse(id, Ended::RefusedClosed, Some(Verdict::Closed));
                }
                model.settle();
            }
            Op::Abort(crew) => {
                let crew = pick(&crews, crew)?;
                let inside = model.jobs_at(|job| job.crew == crew && job.at == At::Inside);
                assert_eq!(real.abort_waiting(crew), inside.len());
                for id in inside {
                    model.end(id, Ended::Aborted);
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
                let number = number_of(&model.permits.remove(permit), &self.requests);
                real.end_permit(number);
                model.moved = model.now;
                model.settle();
            }
            Op::Shrink(permit, bytes) => {
                let permit = pick_at(&model.permits, permit)?;
                let bytes = bytes.min(model.permits[permit].bytes);
                real.shrink_permit(number_of(&model.permits[permit], &self.requests), bytes);
                model.permits[permit].bytes -= bytes;
                model.moved = model.now;
                model.settle();
            }
            Op::Split(permit, bytes) => {
                let permit = pick_at(&model.permits, permit)?;
                let whole = model.permits[permit];
                let bytes = bytes.min(whole.bytes);
                let number = real.split_permit(number_of(&whole, &self.requests), bytes);
                model.permits[permit].bytes -= bytes;
                model.permits.push(ModelPermit { name: Name::Number(number), bytes, ..whole });
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
                    let Some(Ok(number)) = kept else { panic!("{kept:?}") };
                    job.held -= bytes;
                    let (name, of) = (Name::Number(number), Some(of));
                    model.permits.push(ModelPermit { name, of, bytes, since: now });
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
                for (id, ticket) in &self.tickets {
                    if model.jobs.iter().any(|job| job.id == *id && job.at == At::Outside) {
                        real.tell_at_once(*ticket);
                    }
                }
                real.end_what_is_stalled();
                while let Some((line, id)) = model.next_stalled() {
                    if line.is_none() {
                        model.requests.retain(|(other, _)| *other != id);
                        model.told.push((Who::Acquirer(id), Verdict::Stalled));
                    } else if model.job_mut(id).at == At::Outside {
                        model.refuse(id, Ended::Stalled, Some(Verdict::Stalled));
                    } else {
                        let needed_bytes = model.job_mut(id).need;
                        model.end(id, Ended::Stalled);
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
}
