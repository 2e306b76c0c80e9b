//! The bounded channel, with the bytes counted under a lock: what a careful hand-written gate does. A worker
//! that has taken a job waits until its bytes fit.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, bounded};
use parking_lot::{Condvar, Mutex};

use super::{BUDGET_BYTES, JOB_BYTES, Pool, QUEUE};
use crate::done;

type Work = Box<dyn FnOnce() + Send>;

struct Gate {
    free_bytes: Mutex<u64>,
    freed: Condvar,
}

pub(crate) struct Gated(Sender<(u64, Work)>);

impl Gated {
    pub(crate) fn start(workers: usize) -> Gated {
        let gate = Arc::new(Gate { free_bytes: Mutex::new(BUDGET_BYTES), freed: Condvar::new() });
        let (work, jobs) = bounded::<(u64, Work)>(QUEUE);
        for _ in 0..workers {
            let (jobs, gate) = (jobs.clone(), Arc::clone(&gate));
            thread::spawn(move || {
                for (bytes, job) in jobs {
                    let mut free_bytes = gate.free_bytes.lock();
                    gate.freed.wait_while(&mut free_bytes, |free_bytes| *free_bytes < bytes);
                    *free_bytes -= bytes;
                    drop(free_bytes);
                    job();
                    *gate.free_bytes.lock() += bytes;
                    gate.freed.notify_all();
                }
            });
        }
        Gated(work)
    }
}

impl Pool for Gated {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            let work = move || {
                black_box(job);
                done::one();
            };
            self.0.send((JOB_BYTES, Box::new(work))).expect("open");
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let (answer, wait) = bounded(1);
        let work = move || answer.send(value).expect("waited for");
        self.0.send((JOB_BYTES, Box::new(work))).expect("open");
        wait.recv().expect("answered")
    }
}
