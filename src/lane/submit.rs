//! The ways to submit a job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Lane, Patience};
use crate::cost::Cost;
use crate::error::{Refused, SubmitError};
use crate::handle::Handle;
use crate::job::{Cell, Job, Outcome};
use crate::place::Place;
use crate::submitting::Submitting;
use crate::trace::{self, Trace};

impl Lane {
    /// Submits a job, waiting for a place while the lane is full.
    ///
    /// # Errors
    ///
    /// The closure comes back untouched in [`SubmitError`], with the reason: the job
    /// [never fits](Refused::NeverFits) the budget; the executor is [closed](Refused::Closed),
    /// or was closed meanwhile; or the lane is full and the caller is
    /// [a worker of the executor or its budget](Refused::OwnWorker), for which waiting could
    /// hang, as it could for a job that the executor [waits for](Refused::Circle). Such a job can
    /// call the closure itself, within the bytes that it holds.
    ///
    /// # Blocking
    ///
    /// Blocks while the lane is full. Those who wait get their places in the order of their
    /// calls. A job may have its place for about a millisecond before the call returns: several
    /// callers are woken together.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB, Refused};
    ///
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let handle = executor.submit(Cost::new(64 * MIB), || 6 * 7)?;
    /// assert_eq!(handle.join()?, 42);
    ///
    /// let lane = executor.default_lane().clone();
    /// drop(executor);
    /// let refused = lane.submit(Cost::new(1), || 6 * 7).unwrap_err();
    /// assert_eq!(refused.reason, Refused::Closed);
    /// assert_eq!((refused.work)(), 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit<F, T>(&self, cost: Cost, work: F) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_with(Patience::Forever, cost, work)
    }

    /// Submits a job if the lane has a place now.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Lane::submit), and [`Refused::Full`], which names the limit that was
    /// met. A lane of capacity 0 is full unless a worker can take the job at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, Limit, MIB, Refused};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).capacity(1).build()?;
    /// let permit = budget.acquire(64 * MIB)?; // so that nothing starts
    /// let waiting = executor.try_submit(Cost::new(MIB), || ())?;
    /// let refused = executor.try_submit(Cost::new(MIB), || ()).unwrap_err();
    /// assert_eq!(refused.reason, Refused::Full(Limit::LaneJobs { waiting: 1, limit: 1 }));
    /// drop(permit);
    /// waiting.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_submit<F, T>(&self, cost: Cost, work: F) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_with(Patience::None, cost, work)
    }

    /// Submits a job, waiting at most `timeout` for a place.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Lane::submit), and [`Refused::Full`] when the time is over. The
    /// executor's own workers may wait here: they do not wait for ever.
    ///
    /// # Blocking
    ///
    /// Blocks for at most `timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB, Refused};
    ///
    /// use std::time::Duration;
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).capacity(0).build()?;
    /// let permit = budget.acquire(64 * MIB)?; // so that nothing starts
    /// let timeout = Duration::from_millis(1);
    /// let refused = executor.submit_timeout(Cost::new(MIB), timeout, || ()).unwrap_err();
    /// assert!(matches!(refused.reason, Refused::Full(_)));
    /// drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_timeout<F, T>(
        &self,
        cost: Cost,
        timeout: Duration,
        work: F,
    ) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let patience = match Instant::now().checked_add(timeout) {
            Some(deadline) => Patience::Until(deadline),
            None => Patience::Forever,
        };
        self.submit_with(patience, cost, work)
    }

    /// Takes a place in the lane for a job that is still to come, if there is one now: for a body that
    /// has not been read yet.
    ///
    /// The place counts as a waiting job with the cost's input. Read no more than that, or
    /// [declare](Place::declare) more before it is read, and then [submit](Place::submit) the job, with
    /// the input, in its place. So what is refused is refused before its input takes memory, and
    /// what is accepted is counted from the first byte on.
    ///
    /// # Errors
    ///
    /// As for [`try_submit`](Lane::try_submit), and [`Refused::InputAbove`]: a lane that may not queue the
    /// input has no place for it. One of capacity 0 has none at all.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB, Refused};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget).waiting_bytes(8 * MIB).build()?;
    /// let lane = executor.default_lane();
    /// let place = lane.try_reserve(Cost::new(MIB).input(6 * MIB))?;
    /// let refused = lane.try_reserve(Cost::new(MIB).input(6 * MIB)).unwrap_err();
    /// assert!(matches!(refused, Refused::Full(_)));
    /// let body = vec![7_u8; 6 << 20]; // now it may be read
    /// assert_eq!(place.submit(move || body.len())?.join()?, 6 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_reserve(&self, cost: Cost) -> Result<Place, Refused> {
        Place::reserve(self, cost)
    }

    /// Submits a job, in a future that waits for a place while the lane is full.
    ///
    /// The job takes its place in line at the call, among those who block in
    /// [`submit`](Lane::submit): who calls first goes first, however the future is polled. It needs
    /// no particular runtime.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Lane::submit): the future gives the closure back, with the reason.
    ///
    /// # Cancelling
    ///
    /// Dropping the future before it has given the handle cancels the job, see [`Submitting`]. From
    /// then on the [`Handle`] says what becomes of the job when its caller goes.
    ///
    /// # Blocking
    ///
    /// Never, except in a job: on a worker it waits in the call, as `submit` does, with the same
    /// errors.
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Cost, Executor, MIB};
    ///
    /// # pollster::block_on(async {
    /// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
    /// let lane = executor.default_lane();
    /// let handle = lane.submit_async(Cost::new(64 * MIB), || 6 * 7).await?;
    /// assert_eq!(handle.await?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn submit_async<F, T>(&self, cost: Cost, work: F) -> Submitting<F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Submitting::new(self.clone(), cost, work)
    }

    pub(super) fn submit_with<F, T>(
        &self,
        patience: Patience,
        cost: Cost,
        work: F,
    ) -> Result<Handle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let job = Arc::new(Cell::new(work, Trace::of_job(self.its_name(), cost)));
        let queued: Arc<dyn Job> = Arc::<Cell<F, T>>::clone(&job);
        match self.enter(patience, cost, queued) {
            Ok(ticket) => {
                let outcome: Arc<dyn Outcome<T>> = job;
                Ok(Handle::new(outcome, self.shared.id(), ticket))
            }
            Err(reason) => {
                trace::refused(self.its_name(), cost, &reason);
                Err(SubmitError { reason, work: job.take_back() })
            }
        }
    }
}
