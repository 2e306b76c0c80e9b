//! The pools that are compared.

mod admit;
mod channel;
mod gated;
mod others;
mod rayon;
mod tokio;

use std::ops::Range;
use std::pin::Pin;

use clap::ValueEnum;

/// How many jobs a pool with a bound has waiting.
const QUEUE: usize = 1024;
/// What every job declares where bytes are counted: nothing ever waits for them.
const JOB_BYTES: u64 = 4096;
const BUDGET_BYTES: u64 = 1 << 30;

/// A pool whose jobs are empty.
pub(crate) trait Pool: Sync {
    /// Submits jobs that hold one number each, as any real job holds something: a closure that holds nothing
    /// needs no memory. What stands for a job is dropped where the pool has such a thing.
    fn submit(&self, jobs: Range<u64>);
    /// Has a value computed, and waits for it.
    fn round_trip(&self, value: u64) -> u64;
}

/// The same for a task.
pub(crate) trait AsyncPool: Send + Sync {
    fn round_trip(&self, value: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolName {
    Channel,
    Admit,
    GatedChannel,
    TokioSemaphore,
    TokioSpawnBlocking,
    RayonSpawn,
    RayonScope,
    Blocking,
    Threadpool,
    RustyPool,
}

impl PoolName {
    /// The first is what the others are compared with.
    pub(crate) const ALL: [PoolName; 10] = [
        PoolName::Channel,
        PoolName::Admit,
        PoolName::GatedChannel,
        PoolName::TokioSemaphore,
        PoolName::TokioSpawnBlocking,
        PoolName::RayonSpawn,
        PoolName::RayonScope,
        PoolName::Blocking,
        PoolName::Threadpool,
        PoolName::RustyPool,
    ];
    pub(crate) const ASYNC: [PoolName; 3] =
        [PoolName::TokioSpawnBlocking, PoolName::Admit, PoolName::TokioSemaphore];

    pub(crate) fn title(self) -> &'static str {
        match self {
            PoolName::Channel => "crossbeam-channel, bounded",
            PoolName::Admit => "**admit**",
            PoolName::GatedChannel => "the same, and bytes counted by a condvar",
            PoolName::TokioSemaphore => "tokio semaphore + spawn_blocking",
            PoolName::TokioSpawnBlocking => "tokio spawn_blocking",
            PoolName::RayonSpawn => "rayon spawn",
            PoolName::RayonScope => "rayon scope",
            PoolName::Blocking => "blocking",
            PoolName::Threadpool => "threadpool",
            PoolName::RustyPool => "rusty_pool",
        }
    }

    pub(crate) fn start(self, workers: usize) -> Box<dyn Pool> {
        match self {
            PoolName::Channel => Box::new(channel::Channel::start(workers)),
            PoolName::Admit => Box::new(admit::Admit::start(workers)),
            PoolName::GatedChannel => Box::new(gated::Gated::start(workers)),
            PoolName::TokioSemaphore => Box::new(tokio::Semaphored::start(workers)),
            PoolName::TokioSpawnBlocking => Box::new(tokio::SpawnBlocking::start(workers)),
            PoolName::RayonSpawn => Box::new(rayon::Spawn::start(workers)),
            PoolName::RayonScope => Box::new(rayon::Scope::start(workers)),
            PoolName::Blocking => Box::new(others::Blocking),
            PoolName::Threadpool => Box::new(others::Threadpool::start(workers)),
            PoolName::RustyPool => Box::new(others::RustyPool::start(workers)),
        }
    }

    /// For tasks; within a runtime.
    pub(crate) fn start_async(self, workers: usize) -> Box<dyn AsyncPool> {
        match self {
            PoolName::Admit => Box::new(admit::Admit::start(workers)),
            PoolName::TokioSemaphore => Box::new(tokio::Within::with_semaphore()),
            PoolName::TokioSpawnBlocking => Box::new(tokio::Within::alone()),
            other => panic!("{other:?} has no futures here"),
        }
    }
}
