//! A function over a stream: results in order, and only as many items in memory as are allowed.

use std::collections::VecDeque;
use std::fmt;

use thiserror::Error;

use crate::cost::Cost;
use crate::error::{JoinError, Refused, SubmitError};
use crate::handle::ScopedHandle;
use crate::lane::{Lane, Patience};

/// Why an item of a [`Map`] has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// Its job was not accepted. The item is gone.
    #[error(transparent)]
    Refused(Refused),
    /// Its job has no value.
    #[error(transparent)]
    Join(JoinError),
}

/// The results of a function over an iterator, computed by an executor, in the order of the
/// items.
///
/// Items are read ahead of the results that were asked for only as far as there is room: while
/// the lane accepts their jobs, while there are no more of them than the lane's capacity and
/// the number of workers together, and while their declared bytes, finished ones included, are
/// below the budget's admissible bytes and the lane's limit of input together. So a consumer that is slow, or stops, stops
/// the reading.
///
/// Nothing happens before the first call of [`next`](Iterator::next). Dropping a map detaches
/// the jobs it has submitted.
///
/// # Errors
///
/// Each item has a result of its own. A job that never fits or that panics is one error in its
/// place, and the others go on; the item of a job that was refused is dropped. After an executor
/// was closed the map ends with one [`Refused::Closed`], and on a worker of the executor, or of
/// another one on the same budget, it consists of one [`Refused::OwnWorker`].
///
/// # Blocking
///
/// `next` blocks until the next result is there, and while it reads items. A job that waits for
/// bytes which the calling thread itself holds in a [`Permit`](crate::Permit) never starts: drop
/// the permit first.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, MIB, MapError, Refused};
///
/// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
/// // A job that never fits is one error in its place.
/// let sizes = [16 * MIB, 65 * MIB, 1];
/// let results: Vec<_> = executor.map(sizes, |size| Cost::new(*size), |size| size * 2).collect();
/// assert_eq!(*results[0].as_ref().unwrap(), 32 * MIB);
/// assert!(matches!(results[1], Err(MapError::Refused(Refused::NeverFits { .. }))));
/// assert_eq!(*results[2].as_ref().unwrap(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Map<'scope, I: Iterator, T> {
    items: I,
    submit: Box<Submit<'scope, I::Item, T>>,
    lane: Lane,
    window: VecDeque<Ahead<'scope, T>>,
    window_bytes: u64,
    /// An item was read whose job has no place yet.
    has_pending: bool,
    is_read: bool,
}

/// Makes a job of an item, or tries again with the one before, and submits it.
type Submit<'scope, Item, T> =
    dyn FnMut(Patience, Option<Item>) -> (Cost, Submitted<'scope, T>) + 'scope;

type Submitted<'scope, T> = Result<ScopedHandle<'scope, T>, Refused>;

struct Ahead<'scope, T> {
    submitted: Submitted<'scope, T>,
    bytes: u64,
}

impl<'scope, I: Iterator, T> Map<'scope, I, T> {
    /// `submit` is the lane's or the scope's: it brings the bounds on what the job may borrow.
    pub(crate) fn new<C, F, W, S>(
        lane: Lane,
        items: I,
        mut cost: C,
        mut make_work: F,
        submit: S,
    ) -> Self
    where
        I::Item: 'scope,
        C: FnMut(&I::Item) -> Cost + 'scope,
        F: FnMut(I::Item) -> W + 'scope,
        W: 'scope,
        S: Fn(Patience, Cost, W) -> Result<ScopedHandle<'scope, T>, SubmitError<W>> + 'scope,
    {
        let mut pending = None;
        let submit = move |patience, item: Option<I::Item>| {
            let (cost, work) = match item {
                Some(item) => (cost(&item), make_work(item)),
                None => pending.take().expect("there is an item that was refused as full"),
            };
            let submitted = submit(patience, cost, work).map_err(|refused| {
                if let Refused::Full(_) = refused.reason {
                    pending = Some((cost, refused.work));
                }
                refused.reason
            });
            (cost, submitted)
        };
        Map {
            items,
            submit: Box::new(submit),
            lane,
            window: VecDeque::new(),
            window_bytes: 0,
            has_pending: false,
            is_read: false,
        }
    }

    fn read_ahead(&mut self) {
        if !self.is_read && self.lane.shared().was_forked() {
            self.is_read = true;
            self.window.push_back(Ahead { submitted: Err(Refused::Forked), bytes: 0 });
            return;
        }
        if !self.is_read && self.lane.shared().id().is_on_callers_budget() {
            // Its results could not be waited for.
            self.is_read = true;
            self.lane.refuse_own_worker();
            self.window.push_back(Ahead { submitted: Err(Refused::OwnWorker), bytes: 0 });
            return;
        }
        while self.may_read_ahead() {
            // With nothing to wait for in the window, wait for the lane.
            let patience = if self.window.is_empty() { Patience::Forever } else { Patience::None };
            let item = if self.has_pending {
                None
            } else {
                let Some(item) = self.items.next() else {
                    self.is_read = true;
                    return;
                };
                Some(item)
            };
            let (cost, submitted) = (self.submit)(patience, item);
            self.has_pending = matches!(submitted, Err(Refused::Full(_)));
            if self.has_pending {
                return;
            }
            self.is_read = matches!(submitted, Err(Refused::Closed | Refused::Forked));
            let bytes = cost.total_bytes().filter(|_| submitted.is_ok()).unwrap_or(0);
            // No overflow: a job that was accepted fits the budget, and the window holds no more
            // than the budget, the lane and one such job.
            self.window_bytes += bytes;
            self.window.push_back(Ahead { submitted, bytes });
        }
    }

    fn may_read_ahead(&self) -> bool {
        if self.is_read {
            return false;
        }
        let (most_jobs, most_bytes) = self.lane.reach();
        self.window.is_empty() || (self.window.len() < most_jobs && self.window_bytes < most_bytes)
    }
}

impl<I: Iterator, T> Iterator for Map<'_, I, T> {
    type Item = Result<T, MapError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_ahead();
        let Ahead { submitted, bytes } = self.window.pop_front()?;
        self.window_bytes -= bytes;
        Some(match submitted {
            Ok(handle) => handle.join().map_err(MapError::Join),
            Err(reason) => Err(MapError::Refused(reason)),
        })
    }
}

impl<I: Iterator, T> fmt::Debug for Map<'_, I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("ahead", &self.window.len())
            .field("ahead_bytes", &self.window_bytes)
            .finish_non_exhaustive()
    }
}
