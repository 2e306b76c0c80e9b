//! A bounded crossbeam channel of boxed closures: no handles, no bytes.

use std::hint::black_box;
use std::ops::Range;
use std::thread;

use crossbeam_channel::{Sender, bounded};

use super::{Pool, QUEUE};
use crate::done;

type Work = Box<dyn FnOnce() + Send>;

pub(crate) struct Channel(Sender<Work>);

impl Channel {
    pub(crate) fn start(workers: usize) -> Channel {
        let (work, jobs) = bounded::<Work>(QUEUE);
        for _ in 0..workers {
            let jobs = jobs.clone();
            thread::spawn(move || jobs.iter().for_each(|job| job()));
        }
        Channel(work)
    }
}

impl Pool for Channel {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            let work = move || {
                black_box(job);
                done::one();
            };
            self.0.send(Box::new(work)).expect("open");
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let (answer, wait) = bounded(1);
        self.0.send(Box::new(move || answer.send(value).expect("waited for"))).expect("open");
        wait.recv().expect("answered")
    }
}
