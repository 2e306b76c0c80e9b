//! The locks around the admission state, and what has to happen outside of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::Admission;
use crate::answer::{LaneId, Ticket};
use crate::bench::{Done, Grant, Rank};
use crate::cost::Cost;
use crate::effects::{Effects, Gone, Verdict};
use crate::intake::Intake;
use crate::job::Job;
use crate::running::{self, Employer};
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::sys::clock::Moment;
use crate::sys::fork::Generation;
use crate::waiter::Waiter;

pub(crate) type State = Admission<Arc<dyn Job>, Arc<Waiter>>;
/// How long somebody waits before looking whether a time is over that nobody else would notice.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// About a tick of the clock that times are known to.
const LEAST_BETWEEN_LOOKS: Duration = Duration::from_millis(4);

type NewJobs = Intake<Arc<dyn Job>, Arc<Waiter>>;

/// One per budget. Every change to who waits, runs or holds bytes is made under its locks, and
/// nothing of the user's is run, woken or dropped there (I7).
///
/// There are two, taken in this order: `state`, for everything, and `intake`, for new jobs.
/// Producers of busy executors need only the second, and workers with a backlog only the
/// first. Each is on cache lines of its own, away from the other's.
pub(crate) struct Gate {
    generation: Generation,
    state: Apart<Mutex<State>>,
    intake: Apart<Mutex<NewJobs>>,
    /// There may be something to fetch: for workers that look without a lock.
    news: Apart<AtomicBool>,
    /// Whether the [lookout](crate::lookout) looks here.
    watched: AtomicBool,
}

#[repr(align(128))]
struct Apart<T>(T);

impl Gate {
    pub(crate) fn new(capacity_bytes: u64, reserve_bytes: u64) -> Self {
        Gate {
            generation: Generation::current(),
            state: Apart(Mutex::new(Admission::new(capacity_bytes, reserve_bytes))),
            intake: Apart(Mutex::new(Intake::new())),
            news: Apart(AtomicBool::new(false)),
            watched: AtomicBool::new(false),
        }
    }

    /// Whether the locks are those of a parent process, and may be held by nobody who exists.
    pub(crate) fn was_forked(&self) -> bool {
        self.generation != Generation::current()
    }

    /// Takes a job in on credit, or gives it back: then it has to be offered to the state.
    pub(crate) fn accept(
        &self,
        at: LaneId,
        cost: Cost,
        since: Moment,
        expires: Moment,
        job: Arc<dyn Job>,
    ) -> Result<Ticket, Arc<dyn Job>> {
        let mut intake = self.intake.0.lock();
        let was_empty = intake.arrivals.is_empty();
        let ticket = intake.accept(at, cost, since, expires, job)?;
        drop(intake);
        if was_empty {
            self.news.0.store(true, Ordering::Release);
        }
        Ok(ticket)
    }

    /// Makes a change, then wakes and ends whom it concerns.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        self.change_lane(None, change)
    }

    /// The same for a change that a lane's new job comes with, which may earn the lane credit.
    pub(crate) fn change_lane<R>(
        &self,
        lane: Option<LaneId>,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        // Better than to wait for a lock that a thread holds which does not exist here.
        assert!(!self.was_forked(), "budget was made before this process was forked");
        // Not under the lock, which others wait for meanwhile.
        let now = Moment::now();
        let mut state = self.state.0.lock();
        state.set_time(now);
        let mut intake = self.intake.0.lock();
        state.receive(&mut intake);
        let result = change(&mut state);
        state.give_credit(&mut intake, lane);
        if state.has_ready() {
            self.news.0.store(true, Ordering::Release);
        }
        drop(intake);
        self.leave(state);
        result
    }

    /// Ends a worker's job, and gives it the next one if there is one for it.
    pub(crate) fn finish(
        &self,
        crew: usize,
        rank: Rank,
        done: Done,
    ) -> Option<Grant<Arc<dyn Job>>> {
        // Not under the lock, which others wait for meanwhile.
        let now = Moment::now();
        let mut state = self.state.0.lock();
        state.set_time(now);
        let mut grant = state.finish(crew, rank, done);
        // Whoever waits in the state came before the arrivals, so a worker that was given a job
        // need not look at them.
        if state.wants_arrivals(crew) {
            let mut intake = self.intake.0.lock();
            state.receive(&mut intake);
            if grant.is_none() {
                grant = state.take(crew, rank);
            }
            state.give_credit(&mut intake, None);
        }
        self.leave(state);
        grant
    }

    fn leave(&self, mut state: impl std::ops::DerefMut<Target = State>) {
        if state.has_effects() {
            let effects = state.take_effects();
            drop(state);
            self.carry_out(effects);
        }
    }

    /// Waits to be told. Who waits for long looks now and then, in case nobody else does.
    pub(crate) fn wait(&self, waiter: &Waiter, deadline: Option<Instant>) -> Option<Verdict> {
        if let Some(verdict) = waiter.spin() {
            return Some(verdict);
        }
        if cfg!(admit_shuttle) {
            return waiter.sleep(deadline);
        }
        loop {
            let look = Instant::now() + BETWEEN_LOOKS;
            let verdict = waiter.sleep(Some(deadline.map_or(look, |deadline| deadline.min(look))));
            if verdict.is_some() || deadline.is_some_and(|deadline| deadline <= look) {
                return verdict;
            }
            self.change(State::end_what_is_stalled);
        }
    }

    /// Ends whatever is overdue. Gives back when to look again, while anybody waits.
    pub(crate) fn look_for_overdue(&self) -> Option<Duration> {
        self.change(|state| {
            state.end_what_is_stalled();
            state.next_overdue().map(|time| time.clamp(LEAST_BETWEEN_LOOKS, BETWEEN_LOOKS))
        })
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// `false`: it is watched already.
    pub(crate) fn begin_watch(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn end_watch(&self) {
        self.watched.store(false, Ordering::Release);
    }

    /// Looks at the state, with all jobs that were taken in on credit.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.change(|state| look(state))
    }

    /// Whether a free worker may find something that was not there when it last looked.
    pub(crate) fn has_news(&self) -> bool {
        self.news.0.load(Ordering::Acquire)
    }

    /// To be called within a change, by a worker that takes what there is: both locks are held,
    /// so that what is forgotten is what it sees.
    pub(crate) fn forget_news(&self) {
        self.news.0.store(false, Ordering::Relaxed);
    }

    fn carry_out(&self, effects: Effects<Arc<dyn Job>, Arc<Waiter>>) {
        for (waiter, verdict) in effects.told {
            waiter.tell(verdict);
        }
        for Gone { job, fate, place } in effects.gone {
            let crew = place.at().crew;
            // The closure may own the executor, or wait for its end: it would wait for this very
            // thread to go on, as it would on a worker.
            let employer = Employer { gate: std::ptr::from_ref(self).addr(), crew };
            running::as_worker_of(employer, || job.discard());
            self.change(|state| state.left(place));
            job.end(fate);
            // Last: a drain that ends now finds every handle resolved.
            self.change(|state| state.ended(crew));
        }
    }
}
