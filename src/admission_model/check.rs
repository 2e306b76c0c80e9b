//! What must hold after every operation.

use super::model::{At, Doing, Id, ModelJob, ModelLine, Who};
use super::pair::Pair;
use crate::effects::{Place, Verdict};

impl Pair {
    /// Those who have their places, and are put off until others have.
    fn submitters_not_told(&self) -> Vec<Who> {
        let mut placed = Vec::new();
        for crew in self.model.crew_ids() {
            for (lane, queue) in self.real.crew(crew).lanes() {
                assert!(!queue.is_placed_due(), "nobody in lane {lane} is put off for longer");
                placed.extend(queue.placed.iter().copied());
            }
        }
        placed
    }

    pub(super) fn check(&mut self) {
        let effects = self.real.take_effects();
        let once = effects.told.iter().filter(|(who, _)| !matches!(who, Who::Worker { .. }));
        for (who, _) in once {
            assert!(!self.told.contains(who), "{who:?} is told twice");
            self.told.push(*who);
        }
        let by_line = |mut told: Vec<(Who, Verdict)>| {
            told.sort_by_key(|(who, _)| who.line());
            told
        };
        let mut told = std::mem::take(&mut self.model.told);
        told.extend(self.placed.drain(..).map(|who| (who, Verdict::Go)));
        self.placed = self.submitters_not_told();
        told.retain(|(who, verdict)| !(*verdict == Verdict::Go && self.placed.contains(who)));
        // Whom it may be put off for is told in no particular order.
        let together = |(who, _): &(Who, Verdict)| who.is_told_together();
        let (real_together, real): (Vec<_>, _) = effects.told.into_iter().partition(together);
        let (together, told): (Vec<_>, _) = told.into_iter().partition(together);
        assert_eq!(by_line(real), by_line(told), "told");
        let by_id = |mut told: Vec<(Who, Verdict)>| {
            told.sort_by_key(|(who, _)| who.id());
            told
        };
        assert_eq!(by_id(real_together), by_id(together), "told, sooner or later");
        let by_age = |mut ids: Vec<Id>| {
            ids.sort_unstable();
            ids
        };
        assert_eq!(by_age(effects.returned), by_age(std::mem::take(&mut self.model.returned)));
        let mut gone: Vec<_> = effects.gone.iter().map(|gone| (gone.job, gone.fate)).collect();
        gone.sort_by_key(|(id, _)| *id);
        let mut model_gone = std::mem::take(&mut self.model.gone);
        model_gone.sort_by_key(|(id, _)| *id);
        assert_eq!(gone, model_gone, "gone");
        for gone in effects.gone {
            let job = self.model.job_mut(gone.job);
            let at = match gone.place {
                Place::Waiting { at, input_bytes } => {
                    assert_eq!((job.at, input_bytes), (At::Leaving, job.input));
                    at
                }
                Place::Admitted { at, bytes } => {
                    assert_eq!((job.at, bytes), (At::Ending, job.held));
                    at
                }
            };
            assert_eq!((at.crew, at.lane), (job.crew, job.lane));
            self.places.push((gone.job, gone.place));
        }
        let (real, model) = (&self.real, &self.model);
        let ledger = *real.ledger();
        assert_eq!(ledger, model.ledger());
        let held = real.permits();
        assert_eq!(held.waiting(), model.requests.len());
        let mut lines = vec![(None, held.account())];
        for crew in model.crew_ids() {
            let lanes = real.crew(crew).lanes();
            lines.extend(lanes.map(|(lane, queue)| (Some((crew, lane)), queue.account)));
        }
        let mut permits: Vec<_> = held
            .held()
            .map(|permit| (permit.of.map(|of| (of.crew, of.lane)), permit.bytes, permit.since))
            .collect();
        let its = model.permits.iter().map(|permit| (permit.of, permit.bytes, permit.since));
        let mut expected: Vec<_> = its.collect();
        permits.sort_unstable();
        expected.sort_unstable();
        assert_eq!(permits, expected, "permits that are held");
        for (line, account) in lines {
            let its = model.permits.iter().filter(|permit| permit.of == line);
            let bytes: Vec<u64> = its.map(|permit| permit.bytes).collect();
            let account = real.accounts().get(account);
            let permits = (account.permits, account.permit_bytes);
            assert_eq!(permits, (bytes.len() as u64, bytes.iter().sum()), "permits of {line:?}");
        }
        assert_eq!(real.accounts().promised_to_others(held.account()), model.all_promised());
        let mut admitted_bytes = real.accounts().get(held.account()).held_bytes;
        for crew in model.crew_ids() {
            self.check_crew(crew);
            admitted_bytes += real
                .crew(crew)
                .lanes()
                .map(|(_, it)| real.accounts().get(it.account).held_bytes)
                .sum::<u64>();
        }
        assert_eq!(ledger.held_bytes, admitted_bytes, "I3: what is held is held by somebody");
        let in_order =
            |job: &&ModelJob| model.line(Some((job.crew, job.lane))).newest_first_after.is_none();
        for job in model.jobs.iter().filter(|job| job.waits()).filter(in_order) {
            let passed_it = |other: &&ModelJob| {
                let is_behind =
                    (other.crew, other.lane) == (job.crew, job.lane) && other.id > job.id;
                is_behind && other.admitted_as.is_some_and(|nth| nth > job.came_after)
            };
            let passed = model.jobs.iter().filter(passed_it).count();
            assert!(passed <= self.bound as usize, "I2: job {} was passed {passed} times", job.id);
        }
        let admissible = ledger.admissible_bytes();
        let grows = ledger.held_bytes > self.held_before;
        let jobs = model.jobs.iter().filter(|job| job.holds()).map(|job| job.held);
        let permits = model.permits.iter().map(|permit| permit.bytes);
        let holders = jobs.chain(permits).filter(|bytes| *bytes > 0);
        let is_alone = holders.count() == 1;
        assert!(ledger.held_bytes <= admissible || !grows || is_alone, "I1: {ledger}");
        self.held_before = ledger.held_bytes;
    }

    fn check_crew(&self, id: usize) {
        let (model, real, crew) = (&self.model, self.real.crew(id), self.model.crew(id));
        let unfinished = |job: &ModelJob| {
            job.crew == id && matches!(job.at, At::Inside | At::Leaving | At::Ending)
        };
        assert_eq!(real.waiting_jobs(), model.jobs_at(unfinished).len());
        assert_eq!(real.waiting_bytes(), model.inside(id, None).1);
        assert_eq!(real.bench().workers(), crew.workers.len());
        assert_eq!(real.bench().free(), model.free_workers(id));
        assert_eq!(real.has_free_worker(), model.free_workers(id) > 0);
        assert_eq!((real.is_closed(), real.is_over()), (crew.closed, model.is_over(id)));
        assert!(real.waiting_bytes() <= real.waiting_limit_bytes());
        let is_any = |wanted| crew.workers.iter().any(|(_, doing)| *doing == wanted);
        let is_left = model.ready(id) > 0 && is_any(Doing::Benched);
        let is_stranded = is_left && !is_any(Doing::Told) && !is_any(Doing::Looking);
        assert!(!is_stranded, "a ready job, a worker on the bench, and nobody on the way");
        assert!(!(real.is_over() && is_any(Doing::Benched)), "nobody wakes this worker any more");
        let lanes: Vec<_> = real.lanes().map(|(lane, _)| lane).collect();
        assert_eq!(lanes, crew.lanes.keys().copied().collect::<Vec<_>>(), "lanes");
        assert_eq!(*real.past(), model.past(id));
        for (number, lane) in real.lanes() {
            #[cfg(feature = "hdrhistogram")]
            for ended in crate::counts::Ended::ALL {
                let its = lane.wait_times.of(ended).map_or(0, |its| its.len());
                assert_eq!(its, lane.counts.of(ended), "{ended:?} of lane {number}");
                let ran = lane.run_times.of(ended).map_or(0, |its| its.len());
                assert_eq!(ran, if ended.has_run() { its } else { 0 }, "{ended:?} that ran");
            }
            let jobs: Vec<&ModelJob> =
                model.jobs.iter().filter(|job| (job.crew, job.lane) == (id, number)).collect();
            let ModelLine { limit_jobs, limit_bytes, .. } = crew.lanes[&number];
            let inside = (lane.taken_places(), lane.inside_bytes);
            assert_eq!(inside, model.inside(id, Some(number)), "inside lane {number}");
            assert!(inside.0 <= limit_jobs && inside.1 <= limit_bytes);
            let reserved = jobs.iter().filter(|job| job.at == At::Reserved).count();
            assert_eq!(lane.reserved_jobs, reserved);
            let outside = jobs.iter().filter(|job| job.at == At::Outside).count();
            assert_eq!(lane.outside.len(), outside, "outside lane {number}");
            let head = model.next_in(id, number).map(|job| (job.id, job.need));
            assert_eq!(lane.head().map(|(_, entry)| (entry.job, entry.bytes)), head);
            let holding: Vec<_> = jobs.iter().filter(|job| job.holds()).collect();
            let running = holding.iter().filter(|job| job.at != At::Ending).count();
            let account = self.real.accounts().get(lane.account);
            assert_eq!(account.running_jobs, running);
            let permits = model.permits.iter().filter(|permit| permit.of == Some((id, number)));
            let kept: u64 = permits.map(|permit| permit.bytes).sum();
            let jobs: u64 = holding.iter().map(|job| job.held).sum();
            assert_eq!(account.held_bytes, jobs + kept);
            assert_eq!(lane.counts, model.counts(id, number));
        }
    }
}
