//! Pools without a bound.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use super::Pool;
use crate::done;

/// Its threads are the process's, as many as its environment says.
pub(crate) struct Blocking;

impl Pool for Blocking {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            let work = move || {
                black_box(job);
                done::one();
            };
            blocking::unblock(work).detach();
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        pollster::block_on(blocking::unblock(move || value))
    }
}

pub(crate) struct Threadpool(threadpool::ThreadPool);

impl Threadpool {
    pub(crate) fn start(workers: usize) -> Threadpool {
        Threadpool(threadpool::ThreadPool::new(workers))
    }
}

impl Pool for Threadpool {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            self.0.execute(move || {
                black_box(job);
                done::one();
            });
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let (answer, wait) = crossbeam_channel::bounded(1);
        self.0.execute(move || answer.send(value).expect("waited for"));
        wait.recv().expect("answered")
    }
}

pub(crate) struct RustyPool(rusty_pool::ThreadPool);

impl RustyPool {
    pub(crate) fn start(workers: usize) -> RustyPool {
        RustyPool(rusty_pool::ThreadPool::new(workers, workers, Duration::from_secs(60)))
    }
}

impl Pool for RustyPool {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            drop(self.0.evaluate(move || {
                black_box(job);
                done::one();
            }));
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.0.evaluate(move || value).await_complete()
    }
}
