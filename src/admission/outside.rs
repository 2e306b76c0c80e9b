//! Those who wait for a place in a lane, and what they are told.

use super::Admission;
use crate::answer::{LaneId, Ticket};
use crate::effects::Verdict;
use crate::queue::Submitter;

impl<J, W> Admission<J, W> {
    /// Names who is to be told when the job that stands outside gets its place. Gives back whether that
    /// is at once, which it may ask for.
    pub(crate) fn wait(&mut self, ticket: Ticket, waiter: W, at_once: bool) -> bool {
        let lane = self.crew_mut(ticket.at.crew).lane_mut(ticket.at.lane);
        let is_told_at_once = at_once || !lane.tells_together();
        let entry = lane.outside.get_mut(ticket.seq).expect("it was just put there");
        entry.submitter = Some(Submitter { waiter, is_told_at_once });
        is_told_at_once
    }

    /// A submitter has waited for a while: it is told if it has its place, and at once when it gets it.
    pub(crate) fn tell_at_once(&mut self, ticket: Ticket) {
        let crew = self.crew_mut(ticket.at.crew);
        let entry = crew.lane_mut(ticket.at.lane).outside.get_mut(ticket.seq);
        if let Some(submitter) = entry.and_then(|entry| entry.submitter.as_mut()) {
            submitter.is_told_at_once = true;
        }
        self.tell_placed(ticket.at);
    }

    pub(super) fn tell_placed(&mut self, at: LaneId) {
        let told = &mut self.effects.told;
        let crew = self.crews[at.crew].as_mut().expect("its submitter names it");
        crew.tell_placed(at.lane, &mut |waiter| told.push((waiter, Verdict::Go)));
    }

    /// A place in a lane's line became free: those outside move up.
    pub(super) fn let_in(&mut self, at: LaneId) {
        let told = &mut self.effects.told;
        let crew = self.crews[at.crew].as_mut().expect("a place in it became free");
        crew.let_in(at.lane, |waiter| told.push((waiter, Verdict::Go)));
    }

    /// The same in several lanes at once: the oldest of all those outside move up first.
    pub(super) fn let_in_everywhere(&mut self, crew: usize) {
        self.crew_mut(crew).note_who_is_crowded();
        for lane in self.crew(crew).keys() {
            self.let_in(LaneId { crew, lane });
        }
    }
}
