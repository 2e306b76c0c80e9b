//! The workers and the lanes of one executor, as the state machine sees them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use slab::Slab;

use crate::accounts::{Account, Accounts, Turn};
use crate::bench::{Bench, Done, Grant, Holding, Rank};
use crate::counts::Counts;
use crate::effects::Verdict;
use crate::error::Limit;
use crate::intake::{CrewIntake, LaneIntake};
use crate::line::Line;
use crate::queue::{Entry, Queue, Submitter};
use crate::sys::clock::Moment;

mod ending;
mod expiry;
mod lanes;
mod places;
mod turns;
#[cfg(test)]
pub(crate) use turns::WINDOW;

#[derive(Debug)]
pub(crate) struct Crew<J, W> {
    /// The first is the default lane, and there always.
    lanes: Slab<Queue<J, W>>,
    names: HashMap<Arc<str>, usize>,
    /// Of lanes that are gone.
    past: Counts,
    /// The lanes whose head has a turn, in order. So a job costs O(log lanes), and a lane without
    /// jobs nothing. Not used where there is one lane.
    turns: BTreeSet<(Turn, usize)>,
    /// The lanes that have a guarantee, of bytes or workers.
    guaranteed: Vec<usize>,
    /// What they do not hold of the guaranteed workers, in sum.
    promised_workers: usize,
    /// Lanes whose first job outside has room in the lane, but not in the executor's limit of
    /// waiting bytes, by age: that limit too is given out in order. Entries of jobs that have
    /// left are dropped when they come to the front.
    crowded: BTreeSet<(u64, usize)>,
    /// Jobs that wait and must not start after a time, the first of these first.
    expiring: BTreeSet<(Moment, usize, u64)>,
    waiting_jobs: usize,
    waiting_bytes: u64,
    waiting_limit_bytes: u64,
    /// Jobs that stand outside, in all lanes.
    outside_jobs: usize,
    /// Whether the limit is still set aside from the budget.
    limit_claimed: bool,
    bench: Bench<J, W>,
    closed: bool,
    drainers: Line<W>,
}

impl<J, W> Crew<J, W> {
    pub(crate) fn new(waiting_limit_bytes: u64) -> Self {
        Crew {
            lanes: Slab::new(),
            names: HashMap::new(),
            past: Counts::default(),
            turns: BTreeSet::new(),
            guaranteed: Vec::new(),
            promised_workers: 0,
            crowded: BTreeSet::new(),
            expiring: BTreeSet::new(),
            waiting_jobs: 0,
            waiting_bytes: 0,
            waiting_limit_bytes,
            outside_jobs: 0,
            limit_claimed: true,
            bench: Bench::new(),
            closed: false,
            drainers: Line::new(),
        }
    }

    pub(crate) fn lane(&self, lane: usize) -> &Queue<J, W> {
        &self.lanes[lane]
    }

    pub(crate) fn lane_mut(&mut self, lane: usize) -> &mut Queue<J, W> {
        &mut self.lanes[lane]
    }

    pub(crate) fn lanes(&self) -> impl Iterator<Item = (usize, &Queue<J, W>)> {
        self.lanes.iter()
    }

    pub(crate) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn waiting_limit_bytes(&self) -> u64 {
        self.waiting_limit_bytes
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    pub(crate) fn waiting_jobs(&self) -> usize {
        self.waiting_jobs
    }

    /// Whether anybody waits, in a lane or for a place there.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting_jobs > 0 || self.outside_jobs > 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether anybody might move up, or be told, when a place in the lane becomes free.
    #[inline]
    pub(crate) fn has_outside(&self, lane: usize) -> bool {
        let queue = &self.lanes[lane];
        !queue.outside.is_empty() || !queue.placed.is_empty() || !self.crowded.is_empty()
    }

    pub(crate) fn has_free_worker(&self) -> bool {
        self.bench.free() > 0
    }

    /// Whether one is for jobs of the lane with this account.
    pub(crate) fn has_free_worker_for(&self, account: &Account) -> bool {
        let free = self.bench.free();
        free > self.promised_workers || free > 0 && account.promised_workers() > 0
    }

    /// Whether there is still one for the other lane when this one has been given one.
    fn has_free_worker_beside(&self, account: &Account, other: &Account) -> bool {
        let free = self.bench.free() - 1;
        let taken = usize::from(account.promised_workers() > 0);
        let promised = self.promised_workers - taken;
        free > promised || free > 0 && other.promised_workers() > 0
    }

    /// Closed, and nothing left to hand out. (Closing leaves nobody outside.)
    pub(crate) fn is_over(&self) -> bool {
        self.closed && self.waiting_jobs == 0 && !self.bench.has_ready()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.waiting_jobs == 0 && self.bench.workers() == 0
    }

    /// Nobody sleeps who could run a new job, or somebody is on the way to look for one.
    fn may_give_credit(&self) -> bool {
        !self.closed
            && self.bench.workers() > 0
            && (!self.has_free_worker() || self.bench.has_told())
    }

    pub(crate) fn give_credit(&self, intake: &mut CrewIntake<J, W>) {
        intake.is_open = self.may_give_credit();
        // While anybody stands outside, the room in bytes is theirs: they may take it up
        // without the intake being asked, and before new ones.
        intake.room_bytes =
            if self.outside_jobs > 0 { 0 } else { self.waiting_limit_bytes - self.waiting_bytes };
    }

    pub(crate) fn give_lane_credit(
        &self,
        lane: usize,
        intake: &mut CrewIntake<J, W>,
        accounts: &Accounts,
    ) {
        if intake.lanes.len() <= lane {
            intake.lanes.resize_with(lane + 1, LaneIntake::new);
        }
        let Some(queue) = self.lanes.get(lane) else { return };
        let intake = &mut intake.lanes[lane];
        let has_room = queue.outside.is_empty() && !queue.may_choose();
        intake.room_jobs = if has_room { queue.limit_jobs - queue.taken_places() } else { 0 };
        intake.room_bytes = queue.limit_input_bytes - queue.inside_bytes;
        intake.terms = accounts.get(queue.account).terms;
    }

    /// The jobs that a lane took in on credit are in its line.
    pub(crate) fn receive(
        &mut self,
        lane: usize,
        intake: &mut LaneIntake<J, W>,
        accounts: &mut Accounts,
    ) {
        let queue = &mut self.lanes[lane];
        debug_assert!(queue.outside.is_empty(), "credit is never above the room");
        let input_bytes = std::mem::take(&mut intake.line_bytes);
        queue.inside_bytes += input_bytes;
        self.waiting_bytes += input_bytes;
        self.waiting_jobs += intake.line.len();
        // Mostly there are none with a deadline, and then they need not be looked at.
        if std::mem::take(&mut intake.has_expiring) {
            let expiring = intake.line.entries().filter(|(_, entry)| entry.expires < Moment::NEVER);
            self.expiring.extend(expiring.map(|(seq, entry)| (entry.expires, lane, seq)));
        }
        self.lanes[lane].inside.append(&mut intake.line);
        self.note_head(lane, accounts);
    }

    // A job's way through its lane.

    pub(crate) fn enter(
        &mut self,
        lane: usize,
        seq: u64,
        entry: Entry<J, W>,
        accounts: &mut Accounts,
    ) {
        self.note_expiry(entry.expires, lane, seq);
        let queue = &self.lanes[lane];
        let has_place = queue.outside.is_empty()
            && queue.has_room(entry.input_bytes)
            && self.has_waiting_room(entry.input_bytes, (seq, lane));
        if has_place {
            self.put_inside(lane, seq, entry);
        } else {
            self.lanes[lane].outside.push(seq, entry);
            self.outside_jobs += 1;
            self.note_if_crowded(lane);
        }
        self.note_head(lane, accounts);
    }

    /// Takes a job out of its lane, for a free worker. Gives the submitter that may still wait for it.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        lane: usize,
        seq: u64,
        accounts: &mut Accounts,
    ) -> Option<Submitter<W>> {
        let queue = &mut self.lanes[lane];
        let entry = match queue.inside.remove(seq) {
            Some(entry) => {
                queue.inside_bytes -= entry.input_bytes;
                self.waiting_jobs -= 1;
                self.waiting_bytes -= entry.input_bytes;
                entry
            }
            None => {
                self.outside_jobs -= 1;
                queue.outside.remove(seq).expect("it waits in the lane")
            }
        };
        queue.forget_passes(seq);
        let Entry { job, bytes, since, expires, submitter, .. } = entry;
        self.forget_expiry(expires, lane, seq);
        let slot = self.bench.hold(Holding { lane, seq, bytes, since: accounts.now() });
        let is_guaranteed = accounts.get(self.lanes[lane].account).promised_workers() > 0;
        let grant = Grant { job, lane, seq, bytes, since, expires, slot };
        self.bench.make_ready(grant, is_guaranteed);
        self.change_account(lane, accounts, |account| {
            account.running_jobs += 1;
            account.held_bytes += bytes;
        });
        self.note_head(lane, accounts);
        submitter
    }

    /// Takes back a job that was admitted and not fetched. It holds its bytes until
    /// [`end_unstarted`](Crew::end_unstarted), and counts as waiting until it has
    /// [`ended`](Crew::ended).
    pub(crate) fn leave_ready(&mut self, seq: u64, accounts: &mut Accounts) -> Option<Grant<J>> {
        let grant = self.bench.take_back(seq)?;
        self.waiting_jobs += 1;
        self.lanes[grant.lane].leaving += 1;
        self.change_account(grant.lane, accounts, |account| account.running_jobs -= 1);
        self.note_head(grant.lane, accounts);
        Some(grant)
    }

    pub(crate) fn end_unstarted(&mut self, lane: usize, bytes: u64, accounts: &mut Accounts) {
        self.lanes[lane].leaving -= 1;
        self.change_account(lane, accounts, |account| account.held_bytes -= bytes);
        self.note_head(lane, accounts);
    }

    /// Takes a job out of the queue. Its bytes stay until [`left`](Crew::left), and it counts as
    /// waiting until it has [`ended`](Crew::ended).
    pub(crate) fn leave_queue(
        &mut self,
        lane: usize,
        seq: u64,
        accounts: &mut Accounts,
    ) -> Option<Entry<J, W>> {
        // Where the lane is gone, so is the job. The place may be another lane's by now, but the
        // number is nobody else's.
        let queue = self.lanes.get_mut(lane)?;
        let entry = queue.inside.remove(seq)?;
        queue.forget_passes(seq);
        queue.leaving += 1;
        self.forget_expiry(entry.expires, lane, seq);
        self.note_head(lane, accounts);
        Some(entry)
    }

    /// A job that waits in the queue.
    pub(crate) fn waiting(&mut self, lane: usize, seq: u64) -> Option<&Entry<J, W>> {
        self.lanes.get_mut(lane)?.inside.get_mut(seq).map(|entry| &*entry)
    }

    pub(crate) fn left(&mut self, lane: usize, input_bytes: u64) {
        self.lanes[lane].inside_bytes -= input_bytes;
        self.lanes[lane].leaving -= 1;
        self.waiting_bytes -= input_bytes;
    }

    /// A job that left the queue or the bench has ended, and its handle knows.
    pub(crate) fn ended(&mut self) {
        self.waiting_jobs -= 1;
    }

    pub(crate) fn leave_outside(
        &mut self,
        lane: usize,
        seq: u64,
        accounts: &mut Accounts,
    ) -> Option<Entry<J, W>> {
        let entry = self.lanes.get_mut(lane)?.outside.remove(seq)?;
        self.lanes[lane].forget_passes(seq);
        self.forget_expiry(entry.expires, lane, seq);
        self.outside_jobs -= 1;
        self.note_head(lane, accounts);
        Some(entry)
    }

    /// Gives places that became free to those outside, in order.
    #[inline]
    pub(crate) fn let_in(&mut self, lane: usize, mut tell: impl FnMut(W)) {
        self.let_in_one_lane(lane, &mut tell);
        // The waiting bytes may have room now for lanes that lacked only that.
        while let Some((seq, lane)) = self.first_crowded() {
            let (_, first) = self.lanes[lane].outside.front().expect("it is crowded");
            if !self.has_waiting_room(first.input_bytes, (seq, lane)) {
                break;
            }
            self.let_in_one_lane(lane, &mut tell);
        }
    }

    #[inline]
    fn let_in_one_lane(&mut self, lane: usize, tell: &mut impl FnMut(W)) {
        self.move_up(lane, tell);
        if self.lanes[lane].is_placed_due() {
            self.tell_placed(lane, tell);
        }
    }

    fn move_up(&mut self, lane: usize, tell: &mut impl FnMut(W)) {
        while let Some((seq, entry)) = self.lanes[lane].outside.front() {
            let input_bytes = entry.input_bytes;
            if !self.lanes[lane].has_room(input_bytes) {
                return;
            }
            if !self.has_waiting_room(input_bytes, (seq, lane)) {
                self.crowded.insert((seq, lane));
                return;
            }
            self.crowded.remove(&(seq, lane));
            let (_, mut entry) = self.lanes[lane].outside.pop().expect("it is the front");
            self.outside_jobs -= 1;
            match entry.submitter.take() {
                Some(Submitter { waiter, is_told_at_once: true }) => tell(waiter),
                Some(Submitter { waiter, .. }) => self.lanes[lane].placed.push(waiter),
                None => {}
            }
            self.put_inside(lane, seq, entry);
        }
    }

    /// Tells everybody in the lane who has a place.
    pub(crate) fn tell_placed(&mut self, lane: usize, tell: &mut impl FnMut(W)) {
        if let Some(queue) = self.lanes.get_mut(lane) {
            queue.placed.drain(..).for_each(tell);
        }
    }

    fn put_inside(&mut self, lane: usize, seq: u64, entry: Entry<J, W>) {
        self.waiting_jobs += 1;
        self.waiting_bytes += entry.input_bytes;
        self.lanes[lane].inside_bytes += entry.input_bytes;
        self.lanes[lane].inside.insert(seq, entry);
    }

    /// Notes the age of all who may have got room in their lanes, before any of them is let in.
    pub(crate) fn note_who_is_crowded(&mut self) {
        for lane in self.keys() {
            self.note_if_crowded(lane);
        }
    }

    fn note_if_crowded(&mut self, lane: usize) {
        let Some((seq, entry)) = self.lanes[lane].outside.front() else { return };
        if self.lanes[lane].has_room(entry.input_bytes) {
            self.crowded.insert((seq, lane));
        }
    }

    /// Whether the executor-wide limit leaves room, and nobody older waits for that room.
    fn has_waiting_room(&mut self, input_bytes: u64, by_age: (u64, usize)) -> bool {
        input_bytes == 0
            || (input_bytes <= self.waiting_limit_bytes - self.waiting_bytes
                && self.first_crowded().is_none_or(|first| by_age <= first))
    }

    fn first_crowded(&mut self) -> Option<(u64, usize)> {
        while let Some(&(seq, lane)) = self.crowded.first() {
            // A place reserved in the lane may have grown since, and left its first no room there.
            let lacks_only_waiting_bytes = self.lanes.get(lane).is_some_and(|queue| {
                let front = queue.outside.front();
                front.is_some_and(|(first, job)| first == seq && queue.has_room(job.input_bytes))
            });
            if lacks_only_waiting_bytes {
                return Some((seq, lane));
            }
            self.crowded.pop_first();
        }
        None
    }

    /// Which limit keeps a job outside; `None` if it is not there.
    pub(crate) fn limit_met_by(&mut self, lane: usize, seq: u64) -> Option<Limit> {
        self.lanes.get_mut(lane)?.outside.get_mut(seq)?;
        self.limit_met_outside(lane)
    }

    /// Which limit keeps out those that are outside: whoever is behind the first one is kept out
    /// by what keeps out the first.
    pub(crate) fn limit_met_outside(&self, lane: usize) -> Option<Limit> {
        let (_, first) = self.lanes[lane].outside.front()?;
        let input_bytes = first.input_bytes;
        let limit = self.lanes[lane].limit_met_by(input_bytes);
        Some(limit.unwrap_or_else(|| self.waiting_limit_met_by(input_bytes)))
    }

    fn waiting_limit_met_by(&self, input_bytes: u64) -> Limit {
        Limit::WaitingBytes {
            input_bytes,
            waiting_bytes: self.waiting_bytes,
            limit_bytes: self.waiting_limit_bytes,
        }
    }

    /// Changes what a lane's jobs in flight, and their permits, hold.
    pub(crate) fn hold_in_lane(
        &mut self,
        lane: usize,
        accounts: &mut Accounts,
        change: impl FnOnce(&mut Account),
    ) {
        self.change_account(lane, accounts, change);
        self.note_head(lane, accounts);
    }

    // Workers.

    pub(crate) fn bench(&self) -> &Bench<J, W> {
        &self.bench
    }

    pub(crate) fn bench_mut(&mut self) -> &mut Bench<J, W> {
        &mut self.bench
    }

    /// A worker's job has ended. Gives back what it held.
    pub(crate) fn finish(&mut self, rank: Rank, done: Done, accounts: &mut Accounts) -> u64 {
        let Holding { lane, bytes, .. } = self.bench.become_free(rank, done.slot);
        self.change_account(lane, accounts, |account| {
            account.running_jobs -= 1;
            account.held_bytes -= bytes;
        });
        if self.lanes[lane].turn.is_none() {
            self.note_head(lane, accounts);
        }
        self.lanes[lane].count(done.ended, done.waited, done.ran);
        self.retire(lane, accounts);
        bytes
    }

    /// Hands a free worker an admitted job, if there is one for it.
    pub(crate) fn take_ready(&mut self, rank: Rank) -> Option<Grant<J>> {
        self.bench.take_ready(rank, self.promised_workers)
    }

    /// Wakes one worker for work, or all of them for the end.
    #[inline]
    pub(crate) fn rouse(&mut self, told: &mut Vec<(W, Verdict)>) {
        if self.is_over() {
            self.bench.rouse_all(told);
        } else {
            self.bench.rouse_one(self.promised_workers, told);
        }
    }
}
