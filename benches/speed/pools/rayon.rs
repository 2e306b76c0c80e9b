//! rayon, whose queue has no bound.

use std::hint::black_box;
use std::ops::Range;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::Pool;
use crate::done;

fn start(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(workers).build().expect("threads")
}

pub(crate) struct Spawn(ThreadPool);

impl Spawn {
    pub(crate) fn start(workers: usize) -> Spawn {
        Spawn(start(workers))
    }
}

impl Pool for Spawn {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            self.0.spawn(move || {
                black_box(job);
                done::one();
            });
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let (answer, wait) = crossbeam_channel::bounded(1);
        self.0.spawn(move || answer.send(value).expect("waited for"));
        wait.recv().expect("answered")
    }
}

pub(crate) struct Scope(ThreadPool);

impl Scope {
    pub(crate) fn start(workers: usize) -> Scope {
        Scope(start(workers))
    }
}

impl Pool for Scope {
    fn submit(&self, jobs: Range<u64>) {
        self.0.in_place_scope(|scope| {
            for job in jobs {
                scope.spawn(move |_| {
                    black_box(job);
                    done::one();
                });
            }
        });
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.0.install(|| black_box(value))
    }
}
