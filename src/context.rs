//! What a running job may ask about itself, and what it may do with its bytes.

use std::fmt;
use std::sync::Arc;

use crate::answer::Growth;
use crate::error::AcquireError;
use crate::permit::{Permit, Place};
use crate::running::{self, Running};
use crate::shared::Shared;

/// The job that runs on the current thread, as it sees itself.
///
/// A context may be sent to other threads that work for the job, and may outlive it.
///
/// # Examples
///
/// A job that stops when it is no longer wanted:
///
/// ```
/// use std::sync::mpsc::channel;
/// use admit::{Budget, Context, Cost, Executor, MIB};
///
/// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
/// let (started, is_running) = channel();
/// let handle = executor.submit(Cost::new(MIB), move || {
///     let context = Context::current().expect("this is a job");
///     started.send(()).expect("the caller waits for it");
///     while !context.is_cancelled() {
///         std::thread::yield_now();
///     }
///     "stopped half-way"
/// })?;
/// is_running.recv()?;
/// handle.cancel();
/// assert_eq!(handle.join()?, "stopped half-way");
/// assert!(Context::current().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Context {
    running: Running,
}

impl Context {
    /// The context of the job that runs on this thread, if one does.
    pub fn current() -> Option<Context> {
        running::current().map(|running| Context { running })
    }

    /// Whether the job's handle asked it to stop. What to do about it is up to the job: the
    /// handle gets whatever the job returns.
    pub fn is_cancelled(&self) -> bool {
        self.running.job.is_asked_to_cancel()
    }

    /// How many bytes the job holds: those it was admitted with, those it has
    /// [grown](Context::grow) by, less those it has [kept](Context::keep). 0 when it has ended.
    pub fn held_bytes(&self) -> u64 {
        let slot = self.running.slot;
        self.shared()
            .and_then(|shared| shared.gate.change(|state| state.held_by(slot)))
            .unwrap_or(0)
    }

    /// The executor whose bytes the job holds, unless it has ended. One that ran within another job
    /// holds nothing from then on, though the other may still run.
    fn shared(&self) -> Option<Arc<Shared>> {
        if self.running.job.is_finished() { None } else { self.running.executor.find() }
    }

    /// Takes `bytes` of what the job holds into a permit, which holds them after the job has ended:
    /// for a result that outlives it. Return it with the value, best as a [`Lease`](crate::Lease),
    /// and the bytes count until the caller drops it, also while nobody has asked for the value.
    /// Dropping the permit at once returns bytes that the job needs no more.
    ///
    /// The permit is its lane's: it counts for the lane's share, guarantee and ceiling, and keeps
    /// the lane.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotHeld`] if the job does not hold as many, [`AcquireError::Ended`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{Budget, Context, Cost, Executor, Lease, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).build()?;
    /// // 48 MiB to work with, of which the result takes 3.
    /// let handle = executor.submit(Cost::new(48 * MIB), || {
    ///     let picture = vec![0_u8; 3 << 20];
    ///     let context = Context::current().expect("this is a job");
    ///     let permit = context.keep(picture.len() as u64).expect("the job holds more");
    ///     permit.with(picture)
    /// })?;
    /// let lease: Lease<Vec<u8>> = handle.join()?;
    /// assert_eq!(lease.len(), 3 << 20);
    /// assert_eq!(budget.ledger().held_bytes, 3 * MIB);
    /// drop(lease);
    /// assert_eq!(budget.ledger().held_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(&self, bytes: u64) -> Result<Permit, AcquireError> {
        let Some(shared) = self.shared() else { return Err(AcquireError::Ended) };
        let kept = shared.gate.change(|state| state.keep(self.running.slot, bytes));
        match kept {
            Some(Ok(number)) => Ok(Permit::new(Place::Executor(shared), number, bytes)),
            Some(Err(held_bytes)) => Err(AcquireError::NotHeld { kept_bytes: bytes, held_bytes }),
            None => Err(AcquireError::Ended),
        }
    }

    /// Adds `bytes` to what the job holds, if they are free now. Never waits: jobs that all held
    /// some and waited for more would wait for ever.
    ///
    /// Those who wait for bytes come first. A job grows in spite of them only within what its lane
    /// was [guaranteed](crate::LaneOptions::guaranteed_bytes), or where the budget allows
    /// [overtaking](crate::Budget::set_overtaking), and it then counts as one that passes. So
    /// declare the most that a job may need, and return what it does not, rather than the reverse,
    /// where that is known.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotNow`]; [`AcquireError::NeverFits`] if no job of the lane could hold as
    /// much in all; [`AcquireError::Ended`].
    ///
    /// # Examples
    ///
    /// ```
    /// use admit::{AcquireError, Budget, Context, Cost, Executor, MIB};
    ///
    /// let budget = Budget::new(64 * MIB, 0)?;
    /// let executor = Executor::builder().workers(1).budget(budget.clone()).build()?;
    /// let job = || {
    ///     let context = Context::current().expect("this is a job");
    ///     context.grow(16 * MIB).expect("nobody else has anything");
    ///     assert!(matches!(context.grow(64 * MIB), Err(AcquireError::NeverFits { .. })));
    ///     context.held_bytes()
    /// };
    /// assert_eq!(executor.submit(Cost::new(MIB), job)?.join()?, 17 * MIB);
    /// assert_eq!(budget.ledger().held_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&self, bytes: u64) -> Result<(), AcquireError> {
        let Some(shared) = self.shared() else { return Err(AcquireError::Ended) };
        let slot = self.running.slot;
        let (growth, ledger) =
            shared.gate.change(|state| (state.grow(slot, bytes), *state.ledger()));
        match growth {
            Growth::Granted => Ok(()),
            Growth::NotNow { free_bytes } => Err(AcquireError::NotNow {
                needed_bytes: bytes,
                free_bytes,
                admissible_bytes: ledger.admissible_bytes(),
            }),
            Growth::NeverFits { held_bytes, admissible_bytes } => Err(AcquireError::NeverFits {
                needed_bytes: held_bytes.saturating_add(bytes),
                admissible_bytes,
            }),
            Growth::Ended => Err(AcquireError::Ended),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
