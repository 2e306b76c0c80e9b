//! Lanes come and go.

use std::sync::Arc;

use super::Crew;
use crate::accounts::{AccountId, Accounts};
use crate::counts::Counts;
use crate::queue::{LanePlan, Queue};

impl<J, W> Crew<J, W> {
    /// Adds a lane under a name that no other has.
    pub(crate) fn add_lane(&mut self, plan: LanePlan, account: AccountId) -> usize {
        let terms = plan.terms;
        let name = Arc::clone(&plan.name);
        let lane = self.lanes.insert(Queue::new(plan, account));
        self.names.insert(name, lane);
        if terms.has_guarantee() {
            self.guaranteed.push(lane);
        }
        self.promised_workers += terms.guaranteed_workers;
        // Until there are two, turns are not kept in order.
        if self.lanes.len() == 2 {
            let turns = self.lanes.iter().filter_map(|(at, lane)| Some((lane.turn?, at)));
            self.turns.extend(turns);
        }
        lane
    }

    /// The lane with this name. Where it goes when nobody holds it, the caller now does.
    pub(crate) fn find_lane(&mut self, name: &str) -> Option<usize> {
        let lane = *self.names.get(name)?;
        self.hold_lane(lane);
        Some(lane)
    }

    pub(crate) fn has_lane(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Whether a lane goes when nobody holds it.
    pub(crate) fn is_held(&self, lane: usize) -> bool {
        self.lanes[lane].handles.is_some()
    }

    fn hold_lane(&mut self, lane: usize) {
        if let Some(handles) = &mut self.lanes[lane].handles {
            *handles += 1;
        }
    }

    pub(crate) fn let_lane_go(&mut self, lane: usize, accounts: &mut Accounts) {
        if let Some(handles) = &mut self.lanes[lane].handles {
            *handles -= 1;
        }
        self.retire(lane, accounts);
    }

    /// Forgets a lane that nobody holds, if nothing waits, runs, or is on its way out. (Nobody
    /// stands outside: who waits for a place in a lane holds it.)
    #[inline]
    pub(crate) fn retire(&mut self, lane: usize, accounts: &mut Accounts) {
        if self.lanes[lane].handles == Some(0) {
            self.retire_if_empty(lane, accounts);
        }
    }

    fn retire_if_empty(&mut self, at: usize, accounts: &mut Accounts) {
        let lane = &self.lanes[at];
        let is_empty = lane.head().is_none() && lane.leaving == 0;
        if !is_empty || accounts.get(lane.account).holds() {
            return;
        }
        let lane = self.lanes.remove(at);
        self.names.remove(&lane.name);
        self.guaranteed.retain(|other| *other != at);
        self.promised_workers -= accounts.get(lane.account).promised_workers();
        self.past.add(&lane.counts);
        accounts.close(lane.account);
        if self.lanes.len() == 1 {
            self.turns.clear();
        }
    }

    /// What became of the jobs of lanes that are gone.
    pub(crate) fn past(&self) -> &Counts {
        &self.past
    }

    pub(crate) fn guaranteed_workers(&self, accounts: &Accounts) -> usize {
        let terms = self.guaranteed.iter().map(|at| accounts.get(self.lanes[*at].account).terms);
        terms.map(|terms| terms.guaranteed_workers).sum()
    }

    pub(crate) fn keys(&self) -> Vec<usize> {
        self.lanes.iter().map(|(at, _)| at).collect()
    }
}
