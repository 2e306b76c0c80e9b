//! Jobs whose time to start is over.

use super::Crew;
use crate::accounts::Accounts;
use crate::answer::LaneId;
use crate::counts::Ended;
use crate::effects::{Effects, Fate, Gone, Place, Verdict};
use crate::sys::clock::Moment;

impl<J, W> Crew<J, W> {
    /// Whether the time of somebody who waits is over.
    #[inline]
    pub(crate) fn has_expired(&self, accounts: &Accounts) -> bool {
        self.expiring.first().is_some_and(|(expires, ..)| *expires <= accounts.now())
    }

    #[inline]
    pub(super) fn note_expiry(&mut self, expires: Moment, lane: usize, seq: u64) {
        if expires < Moment::NEVER {
            self.expiring.insert((expires, lane, seq));
        }
    }

    /// A job has left.
    #[inline]
    pub(super) fn forget_expiry(&mut self, expires: Moment, lane: usize, seq: u64) {
        if expires < Moment::NEVER {
            self.expiring.remove(&(expires, lane, seq));
        }
    }

    /// Jobs may have left from anywhere in any lane.
    pub(super) fn forget_expiries_of_gone(&mut self) {
        let lanes = &self.lanes;
        self.expiring.retain(|(_, lane, seq)| {
            let lane = lanes.get(*lane);
            lane.is_some_and(|lane| lane.inside.contains(*seq) || lane.outside.contains(*seq))
        });
    }

    #[cfg(test)]
    pub(crate) fn expiring(&self) -> usize {
        self.expiring.len()
    }

    pub(crate) fn first_expiry(&self) -> Option<Moment> {
        self.expiring.first().map(|(expires, ..)| *expires)
    }

    /// Ends the job whose time was over first: one in the queue as
    /// [`leave_queue`](Crew::leave_queue) does, one outside through its submitter. Gives back its
    /// lane, unless it has left already.
    pub(crate) fn expire_first(
        &mut self,
        id: usize,
        effects: &mut Effects<J, W>,
        accounts: &mut Accounts,
    ) -> Option<usize> {
        let (_, lane, seq) = self.expiring.pop_first()?;
        let since = if let Some(entry) = self.leave_queue(lane, seq, accounts) {
            let at = LaneId { crew: id, lane };
            let place = Place::Waiting { at, input_bytes: entry.input_bytes };
            effects.gone.push(Gone { job: entry.job, fate: Fate::Expired, place });
            entry.since
        } else {
            let entry = self.leave_outside(lane, seq, accounts)?;
            effects.returned.push(entry.job);
            let told = entry.submitter.map(|submitter| (submitter.waiter, Verdict::Expired));
            effects.told.extend(told);
            entry.since
        };
        self.lanes[lane].count(Ended::Expired, accounts.now().since(since), None);
        Some(lane)
    }
}
