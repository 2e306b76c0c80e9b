//! Places that are taken before the jobs come.

use super::Admission;
use crate::answer::{LaneId, Offer, Refusal, Ticket};
use crate::cost::Cost;
use crate::queue::Entry;
use crate::sys::clock::Moment;

impl<J, W> Admission<J, W> {
    /// Takes a place in a lane for a job of this cost, if there is one now. Its number is that of the
    /// job, which stands in line as if it had come now.
    pub(crate) fn reserve(
        &mut self,
        at: LaneId,
        cost: Cost,
        expires: Moment,
    ) -> Result<u64, Refusal> {
        let may = self.may_enter(at, cost, expires).and_then(|_| self.may_wait(at, cost));
        let reserved = may.and_then(|()| {
            let seq = self.take_seq();
            let reserved = self.crew_mut(at.crew).reserve(at.lane, seq, cost.input_bytes());
            reserved.map(|()| seq).map_err(Refusal::Full)
        });
        reserved.inspect_err(|refusal| self.count_refusal(at, *refusal, Moment::NEVER))
    }

    /// The job that is to come will have this cost, and not the one before. Never waits.
    pub(crate) fn change_reserved(
        &mut self,
        place: Ticket,
        before: Cost,
        cost: Cost,
    ) -> Result<(), Refusal> {
        let Ticket { at, seq } = place;
        self.may_enter(at, cost, Moment::NEVER)?;
        self.may_wait(at, cost)?;
        let (before_bytes, input_bytes) = (before.input_bytes(), cost.input_bytes());
        let crew = self.crew_mut(at.crew);
        crew.change_reserved(at.lane, seq, before_bytes, input_bytes).map_err(Refusal::Full)?;
        // A larger place too: a lane whose first it leaves no room keeps nobody out any more.
        self.let_in(at);
        self.settle();
        Ok(())
    }

    /// No job will come.
    pub(crate) fn give_up_reserved(&mut self, at: LaneId, cost: Cost) {
        self.crew_mut(at.crew).give_up_reserved(at.lane, cost.input_bytes());
        self.let_in(at);
        self.settle();
    }

    /// The job has come. Where it is refused, its place is free.
    pub(crate) fn enter_reserved(
        &mut self,
        place: Ticket,
        cost: Cost,
        since: Moment,
        expires: Moment,
        job: J,
    ) -> Offer {
        let Ticket { at, seq } = place;
        let bytes = match self.may_enter(at, cost, expires) {
            Ok(bytes) => bytes,
            Err(refusal) => {
                self.count_refusal(at, refusal, since);
                self.effects.returned.push(job);
                self.give_up_reserved(at, cost);
                return Offer::Refused(refusal);
            }
        };
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        let input_bytes = cost.input_bytes();
        let entry = Entry { job, input_bytes, bytes, since, expires, submitter: None };
        crew.enter_reserved(at.lane, seq, entry, accounts);
        if crew.has_free_worker() {
            self.settle();
        }
        Offer::Accepted(place)
    }

    /// Whether the job's input may ever wait in the lane.
    fn may_wait(&self, at: LaneId, cost: Cost) -> Result<(), Refusal> {
        let crew = self.crew(at.crew);
        let limit_bytes = crew.lane(at.lane).limit_input_bytes.min(crew.waiting_limit_bytes());
        match cost.input_bytes() <= limit_bytes {
            true => Ok(()),
            false => Err(Refusal::InputAbove { limit_bytes }),
        }
    }
}
