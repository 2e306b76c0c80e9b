//! The end of an executor, and of jobs that can never run.

use super::Crew;
use crate::accounts::{Accounts, Terms};
use crate::answer::LaneId;
use crate::counts::Ended;
use crate::effects::{Effects, Fate, Gone, Place, Verdict};
use crate::queue::Submitter;

impl<J, W> Crew<J, W> {
    pub(crate) fn close(
        &mut self,
        accounts: &mut Accounts,
        mut refuse: impl FnMut(J, Option<Submitter<W>>),
    ) {
        self.closed = true;
        let now = accounts.now();
        self.crowded.clear();
        self.outside_jobs = 0;
        for (_, queue) in &mut self.lanes {
            while let Some((_, entry)) = queue.outside.pop() {
                queue.count(Ended::RefusedClosed, now.since(entry.since), None);
                refuse(entry.job, entry.submitter);
            }
        }
        self.forget_expiries_of_gone();
        self.note_heads(accounts);
    }

    /// Takes every job out of the queues, as [`leave_queue`](Crew::leave_queue) does.
    pub(crate) fn abort_waiting(&mut self, accounts: &mut Accounts) -> Vec<(usize, J, u64)> {
        let now = accounts.now();
        let mut jobs = Vec::with_capacity(self.waiting_jobs);
        for (lane, queue) in &mut self.lanes {
            while let Some((_, entry)) = queue.inside.pop() {
                queue.count(Ended::Aborted, now.since(entry.since), None);
                queue.leaving += 1;
                jobs.push((lane, entry.job, entry.input_bytes));
            }
        }
        self.forget_expiries_of_gone();
        self.note_heads(accounts);
        jobs
    }

    /// Ends every waiting job that needs more than can ever be admitted: those in the queues as
    /// [`leave_queue`](Crew::leave_queue) does, those outside through their submitters.
    pub(crate) fn evict(
        &mut self,
        id: usize,
        largest_bytes: impl Fn(&Terms) -> u64,
        effects: &mut Effects<J, W>,
        accounts: &mut Accounts,
    ) {
        let now = accounts.now();
        for (lane, queue) in &mut self.lanes {
            let admissible_bytes = largest_bytes(&accounts.get(queue.account).terms);
            for entry in queue.inside.remove_where(|entry| entry.bytes > admissible_bytes) {
                queue.count(Ended::Evicted, now.since(entry.since), None);
                queue.leaving += 1;
                let fate = Fate::NeverFits { needed_bytes: entry.bytes, admissible_bytes };
                let at = LaneId { crew: id, lane };
                let place = Place::Waiting { at, input_bytes: entry.input_bytes };
                effects.gone.push(Gone { job: entry.job, fate, place });
            }
            for entry in queue.outside.remove_where(|entry| entry.bytes > admissible_bytes) {
                queue.count(Ended::RefusedNeverFits, now.since(entry.since), None);
                self.outside_jobs -= 1;
                effects.returned.push(entry.job);
                let told = entry.submitter.map(|submitter| (submitter.waiter, Verdict::NeverFits));
                effects.told.extend(told);
            }
        }
        self.forget_expiries_of_gone();
        self.note_heads(accounts);
    }

    pub(crate) fn give_back_waiting_limit(&mut self) -> u64 {
        if std::mem::take(&mut self.limit_claimed) { self.waiting_limit_bytes } else { 0 }
    }

    pub(crate) fn take_drainers(&mut self) -> impl Iterator<Item = W> + '_ {
        std::iter::from_fn(|| self.drainers.pop()).map(|(_, waiter)| waiter)
    }

    pub(crate) fn wait_for_end(&mut self, seq: u64, waiter: W) -> bool {
        let wait = self.bench.workers() > 0;
        if wait {
            self.drainers.push(seq, waiter);
        }
        wait
    }

    pub(crate) fn stop_waiting_for_end(&mut self, seq: u64) {
        self.drainers.remove(seq);
    }
}
