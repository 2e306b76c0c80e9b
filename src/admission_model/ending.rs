//! The end of a history: everybody goes on until nobody can, and nothing is left.

use super::model::{ModelCrew, ModelJob};
use super::op::Op;
use super::pair::Pair;
use crate::counts::Ended;
use crate::ledger::Ledger;

impl Pair {
    /// Lets everybody go on until nobody can.
    fn run_until_quiet(&mut self) {
        let work = Op::Work { worker: 0, ended: Ended::Completed, stays_awake: false };
        for _ in 0..10_000 {
            if !self.places.is_empty() {
                self.apply(&Op::Left(0));
            } else if !self.workers_on_their_feet().is_empty() {
                self.apply(&work);
            } else if !self.model.permits.is_empty() {
                self.apply(&Op::Release(0));
            } else {
                return;
            }
        }
        panic!("this does not come to rest");
    }

    fn close_and_abort(&mut self) {
        for number in 0..self.model.crew_ids().len() as u8 {
            self.apply(&Op::Close(number));
            self.apply(&Op::Abort(number));
        }
    }

    pub(super) fn end(mut self, aborts: bool) {
        let has_no_worker = |crew: &ModelCrew| !crew.closed && crew.workers.is_empty();
        let mut number = 0; // among the open crews
        for crew in self.model.crew_ids() {
            if has_no_worker(self.model.crew(crew)) {
                self.apply(&Op::StartWorker(number));
            }
            number += u8::from(!self.model.crew(crew).closed);
        }
        if aborts {
            self.close_and_abort();
        }
        // Whatever the end is, half of them come late.
        while let Some((id, _)) = self.reserved().first().copied() {
            let come = Op::EnterReserved(0);
            self.apply(if id % 2 == 0 { &come } else { &Op::GiveUpReserved(0) });
        }
        self.run_until_quiet();
        let can_run = |job: &ModelJob| !self.model.crew(job.crew).workers.is_empty();
        let waiting = self.model.jobs_at(|job| job.waits() && can_run(job));
        assert!(waiting.is_empty(), "I9: waits that do not end: {waiting:?}");
        if !aborts {
            self.close_and_abort();
            self.run_until_quiet();
        }
        for _ in self.model.crew_ids() {
            self.apply(&Op::Detach(0));
        }
        assert!(self.model.crew_ids().is_empty());
        let Ledger { waiting_limit_bytes, held_bytes, .. } = *self.real.ledger();
        assert_eq!((waiting_limit_bytes, held_bytes), (0, 0));
        let permits = self.real.permits();
        let account = self.real.accounts().get(permits.account());
        assert_eq!((account.permits, account.permit_bytes, permits.waiting()), (0, 0, 0));
    }
}
