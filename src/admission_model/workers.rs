//! Who of the workers takes which job, and who is called.

use super::model::{At, Doing, Id, Model, ModelJob, Who, rank};
use crate::bench::Rank;
use crate::effects::Verdict;

impl Model {
    pub(super) fn rouse(&mut self) {
        for id in self.crew_ids() {
            let is_over = self.is_over(id);
            let called = if is_over { None } else { self.wanted(id) };
            let workers = &mut self.crews[id].as_mut().unwrap().workers;
            let benched = workers.iter_mut().filter(|(_, doing)| *doing == Doing::Benched);
            let mut called: Vec<_> = match is_over {
                true => benched.collect(),
                // The last one who lay down.
                false => {
                    benched.filter(|(id, _)| Some(rank(*id)) == called).last().into_iter().collect()
                }
            };
            called.sort_by_key(|(id, _)| rank(*id) == Rank::Low);
            for (worker, doing) in called {
                *doing = Doing::Told;
                self.told.push((Who::Worker { crew: id, id: *worker }, Verdict::Go));
            }
        }
    }

    pub(super) fn set_worker(&mut self, crew: usize, worker: Id, doing: Doing) {
        let workers = &mut self.crew_mut(crew).workers;
        workers.retain(|(id, _)| *id != worker);
        workers.push((worker, doing));
    }

    fn count(&self, crew: usize, which: Rank, is_so: impl Fn(Doing) -> bool) -> usize {
        let workers = self.crew(crew).workers.iter();
        workers.filter(|(id, doing)| rank(*id) == which && is_so(*doing)).count()
    }

    fn ready_of(&self, crew: usize, is_guaranteed: bool) -> usize {
        let is_so =
            |job: &&ModelJob| job.crew == crew && job.has_guaranteed_worker == is_guaranteed;
        self.jobs.iter().filter(is_so).filter(|job| matches!(job.at, At::Ready(_))).count()
    }

    /// Whether a free worker of this rank is to take a job, and if so whether one that has a
    /// guaranteed worker.
    fn is_to_take(&self, crew: usize, which: Rank) -> Option<bool> {
        let free = |which| self.count(crew, which, |doing| !matches!(doing, Doing::Running(_)));
        let (common, guaranteed) = (self.ready_of(crew, false), self.ready_of(crew, true));
        match which {
            Rank::Normal if guaranteed > 0 => Some(true),
            Rank::Normal if common == 0 => None,
            // It leaves as many as are promised, if there is another for the job.
            Rank::Normal => {
                let leaves = free(Rank::Normal) > self.all_promised_workers(crew);
                (leaves || common > free(Rank::Low)).then_some(false)
            }
            Rank::Low if common > 0 => Some(false),
            Rank::Low => (guaranteed > free(Rank::Normal)).then_some(true),
        }
    }

    /// The rank of the worker that is to be called.
    fn wanted(&self, crew: usize) -> Option<Rank> {
        let told = |which| self.count(crew, which, |doing| doing == Doing::Told);
        let benched = |which| self.count(crew, which, |doing| doing == Doing::Benched) > 0;
        let for_guarantee = self.ready_of(crew, true) > 0 && told(Rank::Normal) == 0;
        if for_guarantee && benched(Rank::Normal) {
            return Some(Rank::Normal);
        }
        let nobody_comes = told(Rank::Normal) + told(Rank::Low) == 0;
        let may_come = |which: &Rank| benched(*which) && self.is_to_take(crew, *which).is_some();
        [Rank::Normal, Rank::Low].into_iter().find(may_come).filter(|_| nobody_comes)
    }

    pub(super) fn take(&mut self, crew: usize, worker: Id) -> Option<(Id, usize, u64)> {
        let grant = self.hand(crew, worker);
        self.rouse();
        grant
    }

    fn hand(&mut self, crew: usize, worker: Id) -> Option<(Id, usize, u64)> {
        let is_guaranteed = self.is_to_take(crew, rank(worker))?;
        let ready = |job: &&mut ModelJob| {
            let is_its = job.crew == crew && matches!(job.at, At::Ready(_));
            is_its && job.has_guaranteed_worker == is_guaranteed
        };
        let order = |job: &&mut ModelJob| if let At::Ready(nth) = job.at { nth } else { 0 };
        let job = self.jobs.iter_mut().filter(ready).min_by_key(order).expect("it is ready");
        job.at = At::Running;
        let grant = (job.id, job.lane, job.need);
        self.set_worker(crew, worker, Doing::Running(grant.0));
        Some(grant)
    }

    /// A worker that is here takes what is ready, or else what is admitted first.
    pub(super) fn finish(&mut self, crew: usize, worker: Id) -> Option<(Id, usize, u64)> {
        self.set_worker(crew, worker, Doing::Looking);
        let ready = self.hand(crew, worker);
        self.admit();
        let grant = ready.or_else(|| self.hand(crew, worker));
        self.rouse();
        grant
    }

    pub(super) fn may_leave(&mut self, crew: usize, worker: Id) -> bool {
        if !self.is_over(crew) {
            return false;
        }
        self.crew_mut(crew).workers.retain(|(id, _)| *id != worker);
        if self.crew(crew).workers.is_empty() {
            let its = self.crew_mut(crew);
            its.gave_limit_back = true;
            its.lanes.values_mut().for_each(|lane| lane.terms.guaranteed_bytes = 0);
            for id in std::mem::take(&mut self.crew_mut(crew).drainers) {
                self.told.push((Who::Drainer { crew, id }, Verdict::Go));
            }
        }
        self.settle();
        true
    }
}
