//! Jobs that are run by a job that waits for them.

use std::time::Duration;

use super::Admission;
use crate::answer::{LaneId, Ticket, Within};
use crate::counts::Ended;
use crate::queue::Entry;

impl<J, W> Admission<J, W> {
    /// Hands a job that waits in its lane to one that waits for it, to be run within what that one
    /// holds. Until it has [ended](Admission::end_within), its input counts as waiting.
    pub(crate) fn begin_within(&mut self, ticket: Ticket, held_bytes: u64) -> Within<J> {
        let Ticket { at, seq } = ticket;
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let Some(entry) = crew.waiting(at.lane, seq) else { return Within::Elsewhere };
        let (since, needed_bytes) = (entry.since, entry.bytes);
        if needed_bytes > held_bytes {
            return Within::Above { needed_bytes };
        }
        let left = crew.leave_queue(at.lane, seq, accounts);
        let Entry { job, input_bytes, .. } = left.expect("it waits in the lane");
        self.let_in(at);
        self.settle();
        Within::Runs { job, input_bytes, since }
    }

    /// A job that was run within another one has ended; its closure is dropped.
    pub(crate) fn end_within(
        &mut self,
        at: LaneId,
        input_bytes: u64,
        ended: Ended,
        waited: Duration,
        ran: Option<Duration>,
    ) {
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        crew.lane_mut(at.lane).count(ended, waited, ran);
        crew.left(at.lane, input_bytes);
        crew.ended();
        crew.retire(at.lane, accounts);
        self.let_in_everywhere(at.crew);
        self.settle();
    }
}
