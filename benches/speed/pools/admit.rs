//! `admit`: every job has its bytes admitted and released.

use std::hint::black_box;
use std::ops::Range;
use std::pin::Pin;

use admit::{Budget, Cost, Executor};

use super::{AsyncPool, BUDGET_BYTES, JOB_BYTES, Pool, QUEUE};
use crate::done;

pub(crate) struct Admit(Executor);

const COST: Cost = Cost::new(JOB_BYTES);

impl Admit {
    pub(crate) fn start(workers: usize) -> Admit {
        let budget = Budget::new(BUDGET_BYTES, 0).expect("no reserve");
        let builder = Executor::builder().workers(workers).budget(budget).capacity(QUEUE);
        Admit(builder.build().expect("threads"))
    }
}

impl Pool for Admit {
    fn submit(&self, jobs: Range<u64>) {
        for job in jobs {
            let work = move || {
                black_box(job);
                done::one();
            };
            drop(self.0.submit(COST, work).expect("open"));
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        self.0.submit(COST, move || value).expect("open").join().expect("value")
    }
}

impl AsyncPool for Admit {
    fn round_trip(&self, value: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(async move {
            let handle = self.0.submit_async(COST, move || value).await.expect("open");
            handle.await.expect("value")
        })
    }
}
