//! Who is admitted next: the state machine, with no lock, no thread and no clock.
//!
//! One `Admission` holds a budget's bytes and everybody who wants some of them: the lanes of
//! every executor on the budget, and the callers who acquire permits directly. Because the
//! heads of all lines and the bytes in use are one state, a job is chosen and charged in one
//! step, and nobody can slip in between "the head does not fit" and "the bytes are taken".
//!
//! Every event (a submit, an end, a cancel, a resize) changes the state and then calls
//! [`settle`](Admission::settle), which admits whoever may go now. What has to happen outside
//! the lock is left in [`Effects`]: whom to wake, and which jobs to end.

use crate::answer::{LaneId, Offer, Refusal, Ticket};
use crate::bench::{Done, Grant, Rank};
use crate::cost::Cost;
use crate::crew::Crew;
use crate::effects::{Effects, Fate, Gone, Place, Verdict};
use crate::error::Limit;
use crate::intake::{CrewIntake, Intake};
use crate::ledger::Ledger;
use crate::permits::Permits;
use crate::sys::clock::Moment;

mod acquire;

/// Somebody who is first in a line and lacks nothing but bytes.
#[derive(Clone, Copy, Debug)]
enum Claim {
    Acquirer { bytes: u64 },
    Head { at: LaneId, bytes: u64 },
}

#[derive(Debug)]
pub(crate) struct Admission<J, W> {
    ledger: Ledger,
    crews: Vec<Option<Crew<J, W>>>,
    permits: Permits<W>,
    next_seq: u64,
    effects: Effects<J, W>,
}

impl<J, W> Admission<J, W> {
    pub(crate) fn new(capacity_bytes: u64, reserve_bytes: u64) -> Self {
        Admission {
            ledger: Ledger::new(capacity_bytes, reserve_bytes),
            crews: Vec::new(),
            permits: Permits::new(),
            next_seq: 0,
            effects: Effects::new(),
        }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn permits(&self) -> &Permits<W> {
        &self.permits
    }

    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    pub(crate) fn take_effects(&mut self) -> Effects<J, W> {
        std::mem::replace(&mut self.effects, Effects::new())
    }

    pub(crate) fn crew(&self, crew: usize) -> &Crew<J, W> {
        self.crews[crew].as_ref().expect("a crew lives as long as anyone who can name it")
    }

    fn crew_mut(&mut self, crew: usize) -> &mut Crew<J, W> {
        self.crews[crew].as_mut().expect("a crew lives as long as anyone who can name it")
    }

    // Executors come and go.

    /// Adds an executor. Its limit of waiting bytes is set aside from the budget until its
    /// workers have left; without that much free, gives back what is free.
    pub(crate) fn attach(&mut self, crew: Crew<J, W>) -> Result<usize, u64> {
        let room = self.ledger.free_bytes();
        if crew.waiting_limit_bytes() > room {
            return Err(room);
        }
        self.ledger.waiting_limit_bytes += crew.waiting_limit_bytes();
        let id = match self.crews.iter().position(Option::is_none) {
            Some(id) => id,
            None => {
                self.crews.push(None);
                self.crews.len() - 1
            }
        };
        self.crews[id] = Some(crew);
        self.settle();
        Ok(id)
    }

    /// An executor has come to stay: what it has set aside others will not get.
    pub(crate) fn stay(&mut self) {
        self.evict_what_never_fits();
        self.settle();
    }

    /// Forgets an executor that no lane, handle or worker can name any more.
    pub(crate) fn detach(&mut self, crew: usize) {
        let mut gone = self.crews[crew].take().expect("a crew is detached once");
        self.ledger.waiting_limit_bytes -= gone.give_back_waiting_limit();
        self.settle();
        assert!(gone.has_ended(), "I8: a crew that is let go has nothing waiting or running");
    }

    // A job's way in.

    /// Learns of the jobs that were taken in on credit.
    pub(crate) fn receive(&mut self, intake: &mut Intake<J, W>) {
        if intake.arrivals.is_empty() {
            return;
        }
        self.next_seq = intake.next_seq;
        for at in intake.arrivals.drain(..) {
            let crew = self.crews[at.crew].as_mut().expect("its submitters name it");
            crew.receive(at.lane, &mut intake.crews[at.crew].lanes[at.lane]);
        }
        self.settle();
    }

    /// Grants new credit to a lane, and tells the intake what else it goes by.
    pub(crate) fn give_credit(&self, intake: &mut Intake<J, W>, lane: Option<LaneId>) {
        intake.next_seq = self.next_seq;
        intake.admissible_bytes = self.ledger.admissible_bytes();
        intake.crews.resize_with(self.crews.len(), CrewIntake::new);
        for (crew, intake) in self.crews.iter().zip(&mut intake.crews) {
            match crew {
                Some(crew) => crew.give_credit(intake),
                None => *intake = CrewIntake::new(),
            }
        }
        if let Some(at) = lane {
            let intake = &mut intake.crews[at.crew].lanes[at.lane];
            self.crew(at.crew).give_lane_credit(at.lane, intake);
        }
    }

    /// Puts a job at the end of its lane and admits whoever may go.
    pub(crate) fn offer(&mut self, at: LaneId, cost: Cost, since: Moment, job: J) -> Offer {
        if self.crew(at.crew).is_closed() {
            self.crew_mut(at.crew).lane_mut(at.lane).counts.refused_closed += 1;
            self.effects.returned.push(job);
            return Offer::Refused(Refusal::Closed);
        }
        let admissible_bytes = self.ledger.admissible_bytes();
        let Some(bytes) = cost.total_bytes().filter(|bytes| *bytes <= admissible_bytes) else {
            self.crew_mut(at.crew).lane_mut(at.lane).counts.refused_never_fits += 1;
            self.effects.returned.push(job);
            return Offer::Refused(Refusal::NeverFits { admissible_bytes });
        };
        let seq = self.take_seq();
        let crew = self.crews[at.crew].as_mut().expect("checked above");
        crew.enter(at.lane, seq, cost.input_bytes(), bytes, since, job);
        // The end of a line is no news to anybody but a free worker.
        if crew.has_free_worker() {
            self.settle();
        }
        let ticket = Ticket { at, seq };
        // It joined last, so it still stands outside exactly if it is the last one there.
        if self.crew(at.crew).lane(at.lane).outside.last_seq() == Some(seq) {
            Offer::Outside(ticket)
        } else {
            Offer::Accepted(ticket)
        }
    }

    /// Names who is to be told when the job that stands outside gets its place.
    pub(crate) fn wait(&mut self, ticket: Ticket, waiter: W) {
        let lane = self.crew_mut(ticket.at.crew).lane_mut(ticket.at.lane);
        lane.outside.get_mut(ticket.seq).expect("it was just put there").submitter = Some(waiter);
    }

    /// Takes back a job that still stands outside. `None`: it has its place after all, or was
    /// refused and its submitter told.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> Option<Refusal> {
        let limit = self.take_back(ticket)?;
        self.crew_mut(ticket.at.crew).lane_mut(ticket.at.lane).counts.refused_full += 1;
        Some(Refusal::Full(limit))
    }

    /// The same for a worker that must not wait for its own executor.
    pub(crate) fn withdraw_from_own_worker(&mut self, ticket: Ticket) -> Option<Refusal> {
        self.take_back(ticket)?;
        self.refuse_own_worker(ticket.at);
        Some(Refusal::OwnWorker)
    }

    /// Counts a submission by a worker that was not even offered.
    pub(crate) fn refuse_own_worker(&mut self, at: LaneId) {
        self.crew_mut(at.crew).lane_mut(at.lane).counts.refused_own_worker += 1;
    }

    fn take_back(&mut self, ticket: Ticket) -> Option<Limit> {
        let crew = self.crew_mut(ticket.at.crew);
        let limit = crew.limit_met_by(ticket.at.lane, ticket.seq)?;
        let job = crew.leave_outside(ticket.at.lane, ticket.seq)?;
        self.effects.returned.push(job);
        self.let_in(ticket.at);
        self.settle();
        Some(limit)
    }

    /// Ends a job that no worker has fetched yet. `false`: a worker has it, or it has ended.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> bool {
        let Ticket { at, seq } = ticket;
        let crew = self.crew_mut(at.crew);
        let (job, place) = if let Some((job, input_bytes)) = crew.leave_queue(at.lane, seq) {
            (job, Place::Waiting { at, input_bytes })
        } else if let Some((job, bytes)) = crew.leave_ready(seq) {
            (job, Place::Admitted { at, bytes })
        } else {
            return false;
        };
        crew.lane_mut(at.lane).counts.cancelled += 1;
        self.effects.gone.push(Gone { job, fate: Fate::Cancelled, place });
        self.let_in(at);
        self.settle();
        true
    }

    /// The closure of a job that will not run has been dropped.
    pub(crate) fn left(&mut self, place: Place) {
        match place {
            Place::Waiting { at, input_bytes } => {
                self.crew_mut(at.crew).left(at.lane, input_bytes);
                self.let_in(at);
            }
            Place::Admitted { at, bytes } => {
                self.ledger.release(bytes);
                self.crew_mut(at.crew).end_unstarted(at.lane, bytes);
            }
        }
        self.settle();
    }

    /// A job that will not run has ended, and its handle knows.
    pub(crate) fn ended(&mut self, crew: usize) {
        self.crew_mut(crew).ended();
        self.settle();
    }

    // A worker's round.

    /// Whether an admitted job waits to be fetched.
    pub(crate) fn has_ready(&self) -> bool {
        self.crews.iter().flatten().any(|crew| crew.bench().has_ready())
    }

    /// Whether a worker of the crew should look into the intake.
    pub(crate) fn wants_arrivals(&self, crew: usize) -> bool {
        self.crew(crew).has_free_worker()
    }

    /// A worker has started and is free.
    pub(crate) fn start_worker(&mut self, crew: usize) {
        self.crew_mut(crew).bench_mut().start();
        self.settle();
    }

    /// A worker that was counted did not come to life. Nothing was submitted to its crew yet.
    pub(crate) fn miss_worker(&mut self, crew: usize) {
        self.crew_mut(crew).bench_mut().miss();
    }

    /// Hands a free worker an admitted job, if there is one.
    pub(crate) fn take(&mut self, crew: usize) -> Option<Grant<J>> {
        let crew = self.crews[crew].as_mut().expect("its worker names it");
        let grant = crew.bench_mut().take_ready()?;
        crew.rouse(&mut self.effects.told);
        Some(grant)
    }

    /// A worker's job has ended: its bytes return, once (I3), and the worker is free, and gets
    /// the next job if there is one for it.
    pub(crate) fn finish(&mut self, crew: usize, done: Done) -> Option<Grant<J>> {
        self.ledger.release(done.bytes);
        self.crew_mut(crew).finish(done);
        // A worker that is here takes what is ready, or else what is admitted first.
        let ready = self.take(crew);
        let taker = if ready.is_none() { Some(crew) } else { None };
        let admitted = self.settle_for(taker);
        ready.or(admitted)
    }

    /// A free worker found nothing and lies down; it is told when there is work, or an end. To
    /// be called in one step with the `take` and the `may_leave` that gave it nothing to do.
    pub(crate) fn bench(&mut self, crew: usize, worker: W, rank: Rank) {
        self.crew_mut(crew).bench_mut().lie_down(worker, rank);
    }

    /// A free worker found nothing and looks again soon, as if it had been told to.
    pub(crate) fn stay_awake(&mut self, crew: usize) {
        self.crew_mut(crew).bench_mut().stay_awake();
    }

    /// A worker that was told has come.
    pub(crate) fn arrive(&mut self, crew: usize) {
        self.crew_mut(crew).bench_mut().arrive();
    }

    /// Lets a free worker leave, if the crew is closed and nothing is left to run.
    pub(crate) fn may_leave(&mut self, crew: usize) -> bool {
        if !self.crew(crew).is_over() {
            return false;
        }
        if self.crew_mut(crew).bench_mut().leave() {
            // The last worker is gone: nothing can wait here any more.
            let crew = self.crews[crew].as_mut().expect("its worker names it");
            self.ledger.waiting_limit_bytes -= crew.give_back_waiting_limit();
            self.effects.told.extend(crew.take_drainers().map(|waiter| (waiter, Verdict::Go)));
            self.settle();
        }
        true
    }

    // Ending.

    /// Accepts nothing from now on. Whoever stands outside is told and gets the closure back.
    pub(crate) fn close(&mut self, crew: usize) {
        let effects = &mut self.effects;
        let crew = self.crews[crew].as_mut().expect("its executor names it");
        crew.close(|job, submitter| {
            effects.returned.push(job);
            effects.told.extend(submitter.map(|waiter| (waiter, Verdict::Closed)));
        });
        self.settle();
    }

    /// Ends every job that still waits in the queues.
    pub(crate) fn abort_waiting(&mut self, crew: usize) -> usize {
        let jobs = self.crew_mut(crew).abort_waiting();
        let count = jobs.len();
        self.effects.gone.extend(jobs.into_iter().map(|(lane, job, input_bytes)| Gone {
            job,
            fate: Fate::Aborted,
            place: Place::Waiting { at: LaneId { crew, lane }, input_bytes },
        }));
        self.let_in_everywhere(crew);
        self.settle();
        count
    }

    /// Names who is to be told when the last worker has left. `None`: it has already.
    pub(crate) fn wait_for_end(&mut self, crew: usize, waiter: W) -> Option<u64> {
        let seq = self.take_seq();
        self.crew_mut(crew).wait_for_end(seq, waiter).then_some(seq)
    }

    pub(crate) fn stop_waiting_for_end(&mut self, crew: usize, seq: u64) {
        self.crew_mut(crew).stop_waiting_for_end(seq);
    }

    /// Sets capacity and reserve. Bytes above a shrunk capacity stay held and only block new
    /// admissions; whoever waits for more than can ever be there is told now.
    pub(crate) fn resize(&mut self, capacity_bytes: u64, reserve_bytes: u64) {
        self.ledger.capacity_bytes = capacity_bytes;
        self.ledger.reserve_bytes = reserve_bytes;
        self.evict_what_never_fits();
        self.settle();
    }

    // The rule.

    /// Admits, oldest first, everybody who may go now.
    fn settle(&mut self) {
        self.settle_for(None);
    }

    /// The same, and hands the first job of the taker's crew straight to the taker, a free
    /// worker.
    fn settle_for(&mut self, mut taker: Option<usize>) -> Option<Grant<J>> {
        let mut taken = None;
        while let Some(claim) = self.oldest_claim() {
            match claim {
                Claim::Acquirer { bytes } if self.ledger.fits(bytes) => {
                    self.ledger.hold(bytes);
                    let waiter = self.permits.grant_first();
                    self.effects.told.extend(waiter.map(|waiter| (waiter, Verdict::Go)));
                }
                Claim::Head { at, bytes } if self.ledger.fits(bytes) => {
                    self.ledger.hold(bytes);
                    let crew = self.crews[at.crew].as_mut().expect("it has a claim");
                    let (grant, submitter) = crew.admit_head(at.lane);
                    if taker == Some(at.crew) {
                        taker = None;
                        taken = Some(crew.bench_mut().give(grant));
                    } else {
                        crew.bench_mut().make_ready(grant);
                    }
                    if let Some(submitter) = submitter {
                        self.effects.told.push((submitter, Verdict::Go));
                    }
                    if crew.has_outside(at.lane) {
                        self.let_in(at);
                    }
                }
                // Strict order (I2). The oldest does not fit, and whoever is behind it waits,
                // even where there is room: a stream of small jobs would otherwise keep the
                // big one out for ever, since some of them always hold the bytes it needs.
                Claim::Acquirer { .. } | Claim::Head { .. } => break,
            }
        }
        for crew in self.crews.iter_mut().flatten() {
            crew.rouse(&mut self.effects.told);
        }
        taken
    }

    /// The oldest of the first in all lines. A lane whose crew has no free worker makes no
    /// claim: it waits for a worker, and must not keep bytes from those who have one.
    #[inline]
    fn oldest_claim(&mut self) -> Option<Claim> {
        let mut oldest = None;
        if let Some((seq, bytes)) = self.permits.first() {
            oldest = Some((seq, Claim::Acquirer { bytes }));
        }
        for (id, crew) in self.crews.iter_mut().enumerate() {
            let Some(crew) = crew else { continue };
            if !crew.has_free_worker() {
                continue;
            }
            let Some((seq, lane, bytes)) = crew.oldest_head() else { continue };
            if oldest.is_none_or(|(other, _)| seq < other) {
                oldest = Some((seq, Claim::Head { at: LaneId { crew: id, lane }, bytes }));
            }
        }
        oldest.map(|(_, claim)| claim)
    }

    /// A place in a lane's line became free: those outside move up.
    fn let_in(&mut self, at: LaneId) {
        let told = &mut self.effects.told;
        let crew = self.crews[at.crew].as_mut().expect("a place in it became free");
        crew.let_in(at.lane, |waiter| told.push((waiter, Verdict::Go)));
    }

    /// The same in several lanes at once: the oldest of all those outside move up first.
    fn let_in_everywhere(&mut self, crew: usize) {
        self.crew_mut(crew).note_who_is_crowded();
        for lane in 0..self.crew(crew).lane_count() {
            self.let_in(LaneId { crew, lane });
        }
    }

    /// A wait that cannot end is a hang (I9), so a need above the admissible bytes ends here.
    fn evict_what_never_fits(&mut self) {
        let admissible_bytes = self.ledger.admissible_bytes();
        let evicted = self.permits.evict(admissible_bytes);
        self.effects.told.extend(evicted.map(|waiter| (waiter, Verdict::NeverFits)));
        for id in 0..self.crews.len() {
            let Some(crew) = self.crews[id].as_mut() else { continue };
            crew.evict(id, admissible_bytes, &mut self.effects);
            self.let_in_everywhere(id);
        }
    }

    fn take_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }
}
