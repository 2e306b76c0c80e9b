//! A budget that stands still, and whom that may keep waiting.

use std::time::Duration;

use super::Admission;
use super::settle::Claim;
use crate::answer::LaneId;
use crate::counts::Ended;
use crate::effects::{Fate, Gone, Place, Verdict};
use crate::sys::clock::Moment;

pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

impl<J, W> Admission<J, W> {
    /// How long the budget may stand still before those who wait for its bytes are ended.
    pub(crate) fn set_stall_timeout(&mut self, timeout: Option<Duration>) {
        self.stall_timeout = timeout;
    }

    /// Ends whoever has waited too long for bytes that results keep, where nothing else is going on.
    ///
    /// While no job runs, only the owners of what jobs kept can make room, and one of them may be the
    /// very thread that waits for the job. Nobody can see that from here, so it is a matter of time: of
    /// that in which no byte was returned, and of that in which this one has waited.
    ///
    /// Bytes that were acquired are in use, for as long as their owner likes: who would not fit beside
    /// them if everything that is kept returned waits for that owner.
    pub(crate) fn end_what_is_stalled(&mut self) {
        let Some(timeout) = self.stall_timeout else { return };
        let now = self.accounts.now();
        while self.ledger.jobs == 0 && now.since(self.moved) >= timeout {
            let Some((at, since)) = self.first_stalled() else { return };
            if now.since(since) < timeout {
                return;
            }
            self.end_stalled(at);
            self.settle();
        }
    }

    /// In how long the first time is over that somebody may start within, or for ever. `None`: nobody
    /// waits.
    pub(crate) fn next_overdue(&self) -> Option<Duration> {
        let now = self.accounts.now();
        let anybody = self.permits.first_since().is_some()
            || self.crews().any(|(_, crew)| crew.has_waiting());
        let first = self.crews().filter_map(|(_, crew)| crew.first_expiry()).min();
        anybody.then(|| first.map_or(Duration::MAX, |first| first.since(now)))
    }

    /// The first of those who lack nothing but bytes; or, where there is none, one whose lane has no
    /// room because its own permits take it up. Since when it has waited.
    fn first_stalled(&self) -> Option<(Option<LaneId>, Moment)> {
        let since = |at: LaneId| {
            let (_, head) = self.crew(at.crew).lane(at.lane).head()?;
            Some((Some(at), head.since))
        };
        match self.first_claim() {
            Some(claim) if self.would_fit_beside_acquired(claim) => match claim.at {
                Some(at) => since(at),
                None => self.permits.first_since().map(|since| (None, since)),
            },
            _ => {
                let crews = self.crews.iter().enumerate();
                let crews = crews.filter_map(|(id, crew)| Some((id, crew.as_ref()?)));
                let lanes =
                    crews.filter(|(_, crew)| crew.has_free_worker()).flat_map(|(id, crew)| {
                        let without_turn = crew.lanes().filter(|(_, lane)| lane.turn.is_none());
                        without_turn.map(move |(lane, _)| LaneId { crew: id, lane })
                    });
                lanes.filter_map(since).min_by_key(|(_, since)| *since)
            }
        }
    }

    /// Whether a claim would fit if all that is held were the permits that were acquired.
    fn would_fit_beside_acquired(&self, claim: Claim) -> bool {
        let acquired = self.accounts.get(self.permits.account());
        if self.is_oversize(claim.bytes) {
            return acquired.permits == 0;
        }
        let left_bytes = self.ledger.admissible_bytes().saturating_sub(acquired.permit_bytes);
        let terms = self.accounts.get(claim.account).terms;
        claim.bytes <= terms.largest_bytes(left_bytes, self.accounts.guaranteed_bytes())
    }

    fn end_stalled(&mut self, at: Option<LaneId>) {
        let Some(at) = at else {
            let waiter = self.permits.end_first(&mut self.accounts);
            self.effects.told.extend(waiter.map(|waiter| (waiter, Verdict::Stalled)));
            return;
        };
        let ledger = self.ledger;
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let Some((seq, head)) = crew.lane(at.lane).head() else { return };
        let needed_bytes = head.bytes;
        let waited = accounts.now().since(head.since);
        if let Some(entry) = crew.leave_queue(at.lane, seq, accounts) {
            let fate = Fate::Stalled { needed_bytes, ledger };
            let place = Place::Waiting { at, input_bytes: entry.input_bytes };
            self.effects.gone.push(Gone { job: entry.job, fate, place });
        } else if let Some(entry) = crew.leave_outside(at.lane, seq, accounts) {
            self.effects.returned.push(entry.job);
            let told = entry.submitter.map(|submitter| (submitter.waiter, Verdict::Stalled));
            self.effects.told.extend(told);
        }
        self.crew_mut(at.crew).lane_mut(at.lane).count(Ended::Stalled, waited, None);
        self.let_in(at);
    }
}
