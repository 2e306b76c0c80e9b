//! Jobs whose time to start is over.

use super::Crew;
use crate::accounts::Accounts;
use crate::answer::LaneId;
use crate::effects::{Effects, Fate, Gone, Place, Verdict};

impl<J, W> Crew<J, W> {
    /// Whether the time of somebody who waits is over.
    #[inline]
    pub(crate) fn has_expired(&self, accounts: &Accounts) -> bool {
        self.expiring.first().is_some_and(|(expires, ..)| *expires <= accounts.now())
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
        if let Some((job, input_bytes)) = self.leave_queue(lane, seq, accounts) {
            let place = Place::Waiting { at: LaneId { crew: id, lane }, input_bytes };
            effects.gone.push(Gone { job, fate: Fate::Expired, place });
        } else {
            let (job, submitter) = self.leave_outside(lane, seq, accounts)?;
            effects.returned.push(job);
            effects.told.extend(submitter.map(|waiter| (waiter, Verdict::Expired)));
        }
        self.lanes[lane].counts.expired += 1;
        Some(lane)
    }
}
