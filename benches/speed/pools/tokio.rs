//! tokio's blocking threads: alone, without a bound, and behind a semaphore as people write it today.

use std::hint::black_box;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{AsyncPool, JOB_BYTES, Pool, QUEUE};
use crate::done;

/// One permit is one KiB, since a permit that is a byte could not count to 4 GiB.
const JOB_PERMITS: u32 = (JOB_BYTES / 1024) as u32;
/// As many jobs in flight as the others may queue: `spawn_blocking` has no bound itself.
const PERMITS: usize = QUEUE * JOB_PERMITS as usize;

fn runtime(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).max_blocking_threads(workers).build().expect("threads")
}

pub(crate) struct SpawnBlocking(Runtime);

impl SpawnBlocking {
    pub(crate) fn start(workers: usize) -> SpawnBlocking {
        SpawnBlocking(runtime(workers))
    }
}

impl Pool for SpawnBlocking {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            drop(self.0.spawn_blocking(move || {
                black_box(job);
                done::one();
            }));
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.0.block_on(self.0.spawn_blocking(move || value)).expect("value")
    }
}

pub(crate) struct Semaphored {
    runtime: Runtime,
    budget: Arc<Semaphore>,
}

impl Semaphored {
    pub(crate) fn start(workers: usize) -> Semaphored {
        Semaphored { runtime: runtime(workers), budget: Arc::new(Semaphore::new(PERMITS)) }
    }

    fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let budget = Arc::clone(&self.budget);
        let permit = match Arc::clone(&budget).try_acquire_many_owned(JOB_PERMITS) {
            Ok(permit) => permit,
            Err(_) => self.runtime.block_on(budget.acquire_many_owned(JOB_PERMITS)).expect("open"),
        };
        self.runtime.spawn_blocking(move || {
            let value = work();
            drop(permit);
            value
        })
    }
}

impl Pool for Semaphored {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            drop(self.spawn(move || {
                black_box(job);
                done::one();
            }));
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.runtime.block_on(self.spawn(move || value)).expect("value")
    }
}

/// In a task of the runtime whose blocking threads do the work.
pub(crate) struct Within {
    budget: Option<Arc<Semaphore>>,
}

impl Within {
    pub(crate) fn alone() -> Within {
        Within { budget: None }
    }

    pub(crate) fn with_semaphore() -> Within {
        Within { budget: Some(Arc::new(Semaphore::new(PERMITS))) }
    }
}

impl AsyncPool for Within {
    fn round_trip(&self, value: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(async move {
            let permit = match &self.budget {
                Some(budget) => {
                    let permit = Arc::clone(budget).acquire_many_owned(JOB_PERMITS);
                    Some(permit.await.expect("open"))
                }
                None => None,
            };
            let work = move || {
                drop(permit);
                value
            };
            spawn_blocking(work).await.expect("value")
        })
    }
}
