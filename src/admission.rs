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

use std::time::Duration;

use crate::accounts::{Accounts, Terms};
use crate::answer::{LaneId, Offer, Refusal, Ticket};
use crate::bench::{Done, Grant, Rank};
use crate::cost::Cost;
use crate::counts::Ended;
use crate::crew::Crew;
use crate::effects::{Effects, Fate, Gone, Place, Verdict};
use crate::error::Limit;
use crate::intake::{CrewIntake, Intake};
use crate::ledger::Ledger;
use crate::oversize::Oversize;
use crate::overtaking::Overtaking;
use crate::permits::Permits;
use crate::queue::Entry;
use crate::sys::clock::Moment;

mod acquire;
mod attach;
mod hold;
mod outside;
mod reserve;
mod resize;
mod settle;
mod stall;
mod within;
#[cfg(test)]
pub(crate) use stall::DEFAULT_TIMEOUT;

#[derive(Debug)]
pub(crate) struct Admission<J, W> {
    ledger: Ledger,
    crews: Vec<Option<Crew<J, W>>>,
    permits: Permits<W>,
    accounts: Accounts,
    overtaking: Overtaking,
    oversize: Oversize,
    /// Whether the capacity is that of the machine, and no job may be above it.
    is_capacity_hard: bool,
    /// Lanes whose places in the intake may still have the credit of those that had them before.
    added: Vec<LaneId>,
    next_seq: u64,
    /// When somebody last got bytes, or returned some.
    moved: Moment,
    /// How long the budget may stand still. `None`: for ever.
    stall_timeout: Option<Duration>,
    effects: Effects<J, W>,
}

impl<J, W> Admission<J, W> {
    pub(crate) fn new(capacity_bytes: u64, reserve_bytes: u64) -> Self {
        let mut accounts = Accounts::new();
        Admission {
            ledger: Ledger::new(capacity_bytes, reserve_bytes),
            crews: Vec::new(),
            permits: Permits::new(&mut accounts),
            accounts,
            overtaking: Overtaking::NONE,
            oversize: Oversize::Refuse,
            is_capacity_hard: false,
            added: Vec::new(),
            next_seq: 0,
            moved: Moment::START,
            stall_timeout: Some(stall::DEFAULT_TIMEOUT),
            effects: Effects::new(),
        }
    }

    /// The time at which what comes next happens. Jobs whose time to start is over are ended before
    /// any other is considered.
    pub(crate) fn set_time(&mut self, now: Moment) {
        self.accounts.set_time(now);
        if self.expire() {
            self.settle();
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

    pub(crate) fn crews(&self) -> impl Iterator<Item = (usize, &Crew<J, W>)> {
        let crews = self.crews.iter().enumerate();
        crews.filter_map(|(id, crew)| Some((id, crew.as_ref()?)))
    }

    fn crew_mut(&mut self, crew: usize) -> &mut Crew<J, W> {
        self.crews[crew].as_mut().expect("a crew lives as long as anyone who can name it")
    }

    /// A crew, and the accounts of the budget.
    fn crew_and_accounts(&mut self, crew: usize) -> (&mut Crew<J, W>, &mut Accounts) {
        let crew = self.crews[crew].as_mut();
        (crew.expect("a crew lives as long as anyone who can name it"), &mut self.accounts)
    }

    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The largest job that a line can ever have admitted, by its terms.
    fn largest_bytes(&self) -> impl Fn(&Terms) -> u64 + use<J, W> {
        let (admissible_bytes, guaranteed_bytes) =
            (self.ledger.admissible_bytes(), self.accounts.guaranteed_bytes());
        let hard_bytes = self.is_capacity_hard.then_some(self.ledger.capacity_bytes);
        let alone_bytes = self.oversize.most_bytes(hard_bytes);
        move |terms| {
            let beside_others = terms.largest_bytes(admissible_bytes, guaranteed_bytes);
            let others_have_none = guaranteed_bytes == terms.guaranteed_bytes;
            let alone_bytes = if others_have_none { alone_bytes } else { 0 };
            beside_others.max(alone_bytes.min(terms.ceiling_bytes()))
        }
    }

    /// The same for a lane.
    pub(crate) fn largest_bytes_of(&self, at: LaneId) -> u64 {
        let account = self.crew(at.crew).lane(at.lane).account;
        self.largest_bytes()(&self.accounts.get(account).terms)
    }

    /// How long a job that came to the lane now would wait.
    pub(crate) fn predicted_wait(&mut self, at: LaneId) -> Duration {
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let has_worker = crew.has_free_worker_for(accounts.get(crew.lane(at.lane).account));
        crew.lane_mut(at.lane).predicted_wait(usize::from(!has_worker), accounts.now())
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
            let lane = &mut intake.crews[at.crew].lanes[at.lane];
            crew.receive(at.lane, lane, &mut self.accounts);
        }
        self.expire();
        self.settle();
    }

    /// Grants new credit to a lane, and tells the intake what else it goes by.
    pub(crate) fn give_credit(&mut self, intake: &mut Intake<J, W>, lane: Option<LaneId>) {
        intake.next_seq = self.next_seq;
        intake.admissible_bytes = self.ledger.admissible_bytes();
        intake.guaranteed_bytes = self.accounts.guaranteed_bytes();
        intake.crews.resize_with(self.crews.len(), CrewIntake::new);
        for (crew, intake) in self.crews.iter().zip(&mut intake.crews) {
            match crew {
                Some(crew) => crew.give_credit(intake),
                None => *intake = CrewIntake::new(),
            }
        }
        for at in lane.into_iter().chain(std::mem::take(&mut self.added)) {
            let intake = &mut intake.crews[at.crew];
            self.crew(at.crew).give_lane_credit(at.lane, intake, &self.accounts);
        }
    }

    /// Puts a job at the end of its lane and admits whoever may go.
    pub(crate) fn offer(
        &mut self,
        at: LaneId,
        cost: Cost,
        since: Moment,
        expires: Moment,
        job: J,
    ) -> Offer {
        let bytes = match self.may_enter(at, cost, expires) {
            Ok(bytes) => bytes,
            Err(refusal) => {
                self.count_refusal(at, refusal, since);
                self.effects.returned.push(job);
                return Offer::Refused(refusal);
            }
        };
        let seq = self.take_seq();
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let input_bytes = cost.input_bytes();
        let entry = Entry { job, input_bytes, bytes, since, expires, submitter: None };
        crew.enter(at.lane, seq, entry, accounts);
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

    /// The bytes of a job that may wait in the lane, or why none may.
    fn may_enter(&self, at: LaneId, cost: Cost, expires: Moment) -> Result<u64, Refusal> {
        if self.crew(at.crew).is_closed() {
            return Err(Refusal::Closed);
        }
        let admissible_bytes = self.largest_bytes_of(at);
        let bytes = cost.total_bytes().filter(|bytes| *bytes <= admissible_bytes);
        let bytes = bytes.ok_or(Refusal::NeverFits { admissible_bytes })?;
        if expires <= self.accounts.now() { Err(Refusal::Expired) } else { Ok(bytes) }
    }

    /// Takes back a job that still stands outside. `None`: it has its place after all, or was
    /// refused and its submitter told.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) -> Option<Refusal> {
        let (limit, waited) = self.take_back(ticket)?;
        self.count(ticket.at, Ended::RefusedFull, waited);
        Some(Refusal::Full(limit))
    }

    /// The same for a worker that must not wait for its own executor.
    pub(crate) fn withdraw_from_own_worker(&mut self, ticket: Ticket) -> Option<Refusal> {
        let (_, waited) = self.take_back(ticket)?;
        self.count(ticket.at, Ended::RefusedOwnWorker, waited);
        Some(Refusal::OwnWorker)
    }

    /// Gives up a submission, wherever it has got to. `false`: a worker has it, or it has ended.
    pub(crate) fn abandon(&mut self, ticket: Ticket) -> bool {
        match self.take_back(ticket) {
            Some((_, waited)) => {
                self.count(ticket.at, Ended::Cancelled, waited);
                true
            }
            None => self.cancel(ticket),
        }
    }

    /// Counts a submission by a worker that was not even offered.
    pub(crate) fn refuse_own_worker(&mut self, at: LaneId) {
        self.count(at, Ended::RefusedOwnWorker, Duration::ZERO);
    }

    fn count(&mut self, at: LaneId, ended: Ended, waited: Duration) {
        self.crew_mut(at.crew).lane_mut(at.lane).count(ended, waited, None);
    }

    /// `since`: never, where nothing has waited.
    fn count_refusal(&mut self, at: LaneId, refusal: Refusal, since: Moment) {
        let ended = match refusal {
            Refusal::Full(_) => Ended::RefusedFull,
            Refusal::OwnWorker => Ended::RefusedOwnWorker,
            Refusal::NeverFits { .. } | Refusal::InputAbove { .. } => Ended::RefusedNeverFits,
            Refusal::Expired => Ended::Expired,
            Refusal::Closed => Ended::RefusedClosed,
        };
        let waited = self.accounts.now().since(since);
        self.count(at, ended, waited);
    }

    /// Gives back the limit that a job met, and how long it waited.
    fn take_back(&mut self, ticket: Ticket) -> Option<(Limit, Duration)> {
        let (crew, accounts) = self.crew_and_accounts(ticket.at.crew);
        let Some(limit) = crew.limit_met_by(ticket.at.lane, ticket.seq) else {
            // It waits for no more than to hear that it has its place.
            self.tell_placed(ticket.at);
            return None;
        };
        let entry = crew.leave_outside(ticket.at.lane, ticket.seq, accounts)?;
        let waited = accounts.now().since(entry.since);
        self.effects.returned.push(entry.job);
        self.let_in(ticket.at);
        self.settle();
        Some((limit, waited))
    }

    /// Ends a job that no worker has fetched yet. `false`: a worker has it, or it has ended.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> bool {
        let Ticket { at, seq } = ticket;
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let (job, since, place) = if let Some(entry) = crew.leave_queue(at.lane, seq, accounts) {
            (entry.job, entry.since, Place::Waiting { at, input_bytes: entry.input_bytes })
        } else if let Some(grant) = crew.leave_ready(seq, accounts) {
            (grant.job, grant.since, Place::Admitted { at, bytes: grant.bytes })
        } else {
            return false;
        };
        let waited = self.accounts.now().since(since);
        self.count(at, Ended::Cancelled, waited);
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
                self.ledger.end_job(bytes);
                self.moved();
                let (crew, accounts) = self.crew_and_accounts(at.crew);
                crew.end_unstarted(at.lane, bytes, accounts);
            }
        }
        let (crew, accounts) = self.crew_and_accounts(place.at().crew);
        crew.retire(place.at().lane, accounts);
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
    pub(crate) fn start_worker(&mut self, crew: usize, rank: Rank) {
        self.crew_mut(crew).bench_mut().start(rank);
        self.share_out();
        self.settle();
    }

    /// A worker that was counted did not come to life. Nothing was submitted to its crew yet.
    pub(crate) fn miss_worker(&mut self, crew: usize, rank: Rank) {
        self.crew_mut(crew).bench_mut().miss(rank);
        self.share_out();
    }

    /// Hands a free worker an admitted job, if there is one for it.
    pub(crate) fn take(&mut self, crew: usize, rank: Rank) -> Option<Grant<J>> {
        let crew = self.crews[crew].as_mut().expect("its worker names it");
        let grant = crew.take_ready(rank);
        crew.rouse(&mut self.effects.told);
        grant
    }

    /// A worker's job has ended: its bytes return, once (I3), and the worker is free, and gets
    /// the next job if there is one for it.
    pub(crate) fn finish(&mut self, crew: usize, rank: Rank, done: Done) -> Option<Grant<J>> {
        let (its_crew, accounts) = self.crew_and_accounts(crew);
        let bytes = its_crew.finish(rank, done, accounts);
        self.ledger.end_job(bytes);
        self.moved();
        // A worker that is here takes what is ready, or else what is admitted first.
        let ready = self.crew_mut(crew).take_ready(rank);
        let taker = if ready.is_none() { Some((crew, rank)) } else { None };
        let admitted = self.settle_for(taker);
        ready.or(admitted)
    }

    /// A free worker found nothing and lies down; it is told when there is work, or an end. To
    /// be called in one step with the `take` and the `may_leave` that gave it nothing to do.
    pub(crate) fn bench(&mut self, crew: usize, worker: W, rank: Rank) {
        self.crew_mut(crew).bench_mut().lie_down(worker, rank);
    }

    /// A free worker found nothing and looks again soon, as if it had been told to.
    pub(crate) fn stay_awake(&mut self, crew: usize, rank: Rank) {
        self.crew_mut(crew).bench_mut().stay_awake(rank);
    }

    /// A worker that was told has come.
    pub(crate) fn arrive(&mut self, crew: usize, rank: Rank) {
        self.crew_mut(crew).bench_mut().arrive(rank);
    }

    /// Lets a free worker leave, if the crew is closed and nothing is left to run.
    pub(crate) fn may_leave(&mut self, crew: usize, rank: Rank) -> bool {
        if !self.crew(crew).is_over() {
            return false;
        }
        let is_last = self.crew_mut(crew).bench_mut().leave(rank);
        if is_last {
            // Nothing can wait or run here any more.
            let crew = self.crews[crew].as_mut().expect("its worker names it");
            self.ledger.waiting_limit_bytes -= crew.give_back_waiting_limit();
            for (_, lane) in crew.lanes() {
                self.accounts.waive(lane.account);
            }
            self.effects.told.extend(crew.take_drainers().map(|waiter| (waiter, Verdict::Go)));
        }
        self.share_out();
        if is_last {
            self.settle();
        }
        true
    }

    // Ending.

    /// Accepts nothing from now on. Whoever stands outside is told and gets the closure back.
    pub(crate) fn close(&mut self, crew: usize) {
        let effects = &mut self.effects;
        let crew = self.crews[crew].as_mut().expect("its executor names it");
        crew.close(&mut self.accounts, |job, submitter| {
            effects.returned.push(job);
            effects.told.extend(submitter.map(|submitter| (submitter.waiter, Verdict::Closed)));
        });
        for lane in crew.keys() {
            crew.tell_placed(lane, &mut |waiter| effects.told.push((waiter, Verdict::Go)));
        }
        self.settle();
    }

    /// Ends every job that still waits in the queues.
    pub(crate) fn abort_waiting(&mut self, crew: usize) -> usize {
        let (its_crew, accounts) = self.crew_and_accounts(crew);
        let jobs = its_crew.abort_waiting(accounts);
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

    fn take_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }
}
