//! Jobs that borrow from the caller's stack.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::cost::Cost;
use crate::counts::Ended;
use crate::effects::{Fate, Verdict};
use crate::error::{Refused, SubmitError};
use crate::gate::Gate;
use crate::handle::ScopedHandle;
use crate::job::{Cell, Job, Outcome};
use crate::lane::{Lane, Patience};
use crate::map::Map;
use crate::sync::Mutex;
use crate::trace::{self, Trace};
use crate::waiter::Waiter;
use crate::waits::{self, Target};

/// Where jobs that borrow are submitted. [`Lane::scope`] makes one.
///
/// Like [`std::thread::Scope`]: `'env` is what the jobs may borrow, and `'scope` is the scope's
/// own life. Unlike there, a job that panics does not make the scope panic: its handle says so,
/// and without a handle only [`Counts::panicked`](crate::Counts::panicked) does.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    lane: &'env Lane,
    open_jobs: Arc<OpenJobs>,
    // Both invariant: a scope must not be taken for one that lives longer, or shorter.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Counts the jobs of a scope that may still touch what they borrow.
#[derive(Debug)]
struct OpenJobs {
    state: Mutex<OpenState>,
    /// The scope's thread. Made before the first job: making it may panic, late in a thread's
    /// life, and a scope must not unwind while jobs run.
    scope: Waiter,
}

#[derive(Debug)]
struct OpenState {
    count: usize,
    is_awaited: bool,
}

impl OpenJobs {
    fn new() -> Self {
        let state = OpenState { count: 0, is_awaited: false };
        OpenJobs { state: Mutex::new(state), scope: Waiter::new() }
    }

    fn open(&self) {
        self.state.lock().count += 1;
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.count -= 1;
        let is_last = state.count == 0 && state.is_awaited;
        drop(state);
        if is_last {
            self.scope.tell(Verdict::Go);
        }
    }

    fn wait_for_all(&self, gate: &Gate) {
        let mut state = self.state.lock();
        if state.count == 0 {
            return;
        }
        state.is_awaited = true;
        drop(state);
        while gate.wait(&self.scope, None).is_none() {}
    }
}

/// A job of a scope: the job itself, and the scope that waits for it.
struct Scoped<F, T> {
    cell: Arc<Cell<F, T>>,
    open_jobs: Arc<OpenJobs>,
}

impl<F, T> Job for Scoped<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn run(&self) -> Ended {
        self.cell.run()
    }

    fn expire(&self) -> Ended {
        self.cell.expire()
    }

    fn complete(&self) {
        self.cell.complete();
        // Last: from here on the scope may end, and what the job borrowed with it.
        self.open_jobs.close();
    }

    fn discard(&self) {
        self.cell.discard();
    }

    fn end(&self, fate: Fate) {
        self.cell.end(fate);
        self.open_jobs.close();
    }

    fn ask_to_cancel(&self) {
        self.cell.ask_to_cancel();
    }

    fn is_asked_to_cancel(&self) -> bool {
        self.cell.is_asked_to_cancel()
    }

    fn is_finished(&self) -> bool {
        self.cell.is_finished()
    }
}

pub(crate) fn enter<'env, F, R>(lane: &'env Lane, body: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope =
        Scope { lane, open_jobs: Arc::new(OpenJobs::new()), scope: PhantomData, env: PhantomData };
    // From here on: were it known only when the scope ends, one of its jobs could wait for this one by
    // then, and there would be nobody left to refuse.
    let _waiting = waits::commit(Target::Executor(lane.shared().id().place));
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    scope.open_jobs.wait_for_all(&lane.shared().gate);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Submits a job that may borrow what outlives the scope; otherwise as [`Lane::submit`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::submit`]; always [`Refused::OwnWorker`] from one of the executor's own
    /// workers.
    ///
    /// # Blocking
    ///
    /// Blocks while the lane is full.
    pub fn submit<F, T>(
        &'scope self,
        cost: Cost,
        work: F,
    ) -> Result<ScopedHandle<'scope, T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.submit_with(Patience::Forever, cost, work)
    }

    /// Submits a job if the lane has a place now; otherwise as [`Lane::try_submit`].
    ///
    /// # Errors
    ///
    /// As for [`Lane::try_submit`]; always [`Refused::OwnWorker`] from one of the executor's
    /// own workers.
    pub fn try_submit<F, T>(
        &'scope self,
        cost: Cost,
        work: F,
    ) -> Result<ScopedHandle<'scope, T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.submit_with(Patience::None, cost, work)
    }

    /// Runs a function over an iterator whose items may borrow; otherwise as [`Lane::map`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let texts = vec![String::from("a"), String::from("bb")];
    /// let lengths: Vec<usize> = executor.scope(|scope| {
    ///     scope.map(&texts, |_| Cost::new(MIB), |text| text.len()).collect::<Result<_, _>>()
    /// })?;
    /// assert_eq!(lengths, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map<I, C, F, T>(&'scope self, items: I, cost: C, work: F) -> Map<'scope, I::IntoIter, T>
    where
        I: IntoIterator,
        I::Item: Send + 'scope,
        C: FnMut(&I::Item) -> Cost + 'scope,
        F: Fn(I::Item) -> T + Send + Sync + 'scope,
        T: Send + 'scope,
    {
        let work = Arc::new(work);
        let make_work = move |item| {
            let work = Arc::clone(&work);
            move || work(item)
        };
        let submit = move |patience, cost, work| self.submit_with(patience, cost, work);
        Map::new(self.lane.clone(), items.into_iter(), cost, make_work, submit)
    }

    fn submit_with<F, T>(
        &self,
        patience: Patience,
        cost: Cost,
        work: F,
    ) -> Result<ScopedHandle<'scope, T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let shared = self.lane.shared();
        if shared.id().is_on_callers_budget() {
            // The end of the scope would wait for it, with or without a place in the lane.
            self.lane.refuse_own_worker();
            return Err(SubmitError { reason: Refused::OwnWorker, work });
        }
        let cell = Arc::new(Cell::new(work, Trace::of_job(self.lane.its_name(), cost)));
        let open_jobs = Arc::clone(&self.open_jobs);
        let job: Arc<dyn Job + 'scope> = Arc::new(Scoped { cell: Arc::clone(&cell), open_jobs });
        self.open_jobs.open();
        match self.lane.enter(patience, cost, erase_lifetime(job)) {
            Ok(ticket) => {
                let outcome: Arc<dyn Outcome<T> + 'scope> = cell;
                Ok(ScopedHandle::new(outcome, shared.id(), ticket))
            }
            Err(reason) => {
                trace::refused(self.lane.its_name(), cost, &reason);
                let work = cell.take_back();
                self.open_jobs.close();
                Err(SubmitError { reason, work })
            }
        }
    }
}

/// Lets a job that borrows for `'scope` stand in a queue of jobs that borrow nothing.
#[allow(unsafe_code)]
fn erase_lifetime<'scope>(job: Arc<dyn Job + 'scope>) -> Arc<dyn Job> {
    // SAFETY: only the lifetime bound of the trait object changes, so the layouts agree. What
    // borrows for `'scope` is the closure and the value in the job's cell, and both are gone
    // before `'scope` ends. `enter` returns, or unwinds, only when the count of open jobs is
    // zero. A job is counted before it can be reached from elsewhere, and stops being counted
    // either here, after its closure was taken back, or at the end of `complete` or `end`. By
    // then the closure was called or dropped, and the value was moved to the handle or dropped;
    // or it lies in the cell for a handle that cannot outlive `'scope`, and whose drop takes it
    // out. A handle that is leaked leaks its cell and the value with it, so the value's drop
    // never runs. References to the job that live longer, as in a `Context`, reach an empty
    // cell: its flags, and no closure or value.
    unsafe { std::mem::transmute::<Arc<dyn Job + 'scope>, Arc<dyn Job>>(job) }
}
