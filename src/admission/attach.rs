//! Executors and their lanes come and go.

use super::Admission;
use crate::answer::{LaneId, Misfit};
use crate::crew::Crew;
use crate::queue::LanePlan;

impl<J, W> Admission<J, W> {
    /// Adds an executor with its lanes. Its limit of waiting bytes is set aside from the budget
    /// until its workers have left, and the bytes that are guaranteed to its lanes until it is
    /// detached; without that much free, gives back what is free.
    pub(crate) fn attach(
        &mut self,
        mut crew: Crew<J, W>,
        lanes: Vec<LanePlan>,
    ) -> Result<usize, u64> {
        let promised_bytes = self.accounts.promised_to_others(self.permits.account());
        let room = self.ledger.free_bytes().saturating_sub(promised_bytes);
        let mut guaranteed = lanes.iter().map(|lane| lane.terms.guaranteed_bytes);
        let wanted = guaranteed.try_fold(crew.waiting_limit_bytes(), u64::checked_add);
        if wanted.is_none_or(|wanted| wanted > room) {
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
        for lane in lanes {
            let account = self.accounts.open(Some(id), lane.terms);
            crew.add_lane(lane, account);
        }
        self.crews[id] = Some(crew);
        self.share_out();
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
        for (_, lane) in gone.lanes() {
            self.accounts.close(lane.account);
        }
        self.share_out();
        self.settle();
        assert!(gone.has_ended(), "I8: a crew that is let go has nothing waiting or running");
    }

    /// Adds a lane to an executor, to go when nobody holds it.
    pub(crate) fn add_lane(&mut self, crew: usize, lane: LanePlan) -> Result<usize, Misfit> {
        let guaranteed_bytes = lane.terms.guaranteed_bytes;
        let available_bytes =
            self.ledger.admissible_bytes().saturating_sub(self.accounts.guaranteed_bytes());
        if self.crew(crew).is_closed() {
            return Err(Misfit::Closed);
        }
        if self.crew(crew).has_lane(&lane.name) {
            return Err(Misfit::Twice);
        }
        if guaranteed_bytes > available_bytes {
            return Err(Misfit::Bytes { available_bytes });
        }
        let workers = self.crew(crew).bench().workers();
        let others = self.crew(crew).guaranteed_workers(&self.accounts);
        let guaranteed = others.saturating_add(lane.terms.guaranteed_workers);
        if lane.terms.guaranteed_workers > 0 && guaranteed >= workers {
            return Err(Misfit::Workers { guaranteed, workers });
        }
        let account = self.accounts.open(Some(crew), lane.terms);
        let lane = self.crew_mut(crew).add_lane(lane, account);
        self.crew_mut(crew).lane_mut(lane).handles = Some(1);
        self.added.push(LaneId { crew, lane });
        self.evict_what_never_fits();
        self.settle();
        Ok(lane)
    }

    /// The lane with this name, and whether the caller has to let it go.
    pub(crate) fn find_lane(&mut self, crew: usize, name: &str) -> Option<(usize, bool)> {
        let crew = self.crew_mut(crew);
        let lane = crew.find_lane(name)?;
        Some((lane, crew.is_held(lane)))
    }

    pub(crate) fn let_lane_go(&mut self, at: LaneId) {
        let (crew, accounts) = self.crew_and_accounts(at.crew);
        crew.let_lane_go(at.lane, accounts);
        // What it was guaranteed is anybody's.
        self.settle();
    }
}
