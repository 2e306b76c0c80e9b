//! What people write today: a pool of threads, and a semaphore in front of tokio's.

use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::Semaphore;

use super::work::Job;

/// A fixed number of threads behind an unbounded queue. Results lie in another until they are
/// taken.
pub(crate) fn pool(workers: usize, jobs: impl Iterator<Item = Job>, pause: Duration) -> usize {
    let (submit, queue) = channel::<Job>();
    let (answer, answers) = channel();
    let queue = Arc::new(Mutex::new(queue));
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let (queue, answer) = (Arc::clone(&queue), answer.clone());
            thread::spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    drop(answer.send((job.work)()));
                }
            })
        })
        .collect();
    drop(answer);
    jobs.for_each(|job| submit.send(job).expect("the queue has its other end"));
    drop(submit);
    let count = answers.iter().inspect(|_| thread::sleep(pause)).count();
    threads.into_iter().for_each(|thread| thread.join().expect("no job panics"));
    count
}

/// A thread for each job that the semaphore has bytes for, in units of 1 KiB: tokio counts
/// permits in 32 bits.
pub(crate) fn tokio(bytes: u64, jobs: impl Iterator<Item = Job>, pause: Duration) -> usize {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).build().expect("threads");
    let semaphore = Arc::new(Semaphore::new(usize::try_from(bytes >> 10).expect("it fits")));
    runtime.block_on(async {
        let (answer, answers) = sync_channel(usize::from(u16::MAX));
        let taker = thread::spawn(move || answers.iter().inspect(|_| thread::sleep(pause)).count());
        for job in jobs {
            let total = job.cost.total_bytes().expect("it fits").div_ceil(1 << 10);
            let permits = u32::try_from(total).expect("it fits");
            let permit = Arc::clone(&semaphore).acquire_many_owned(permits).await.expect("open");
            let answer = answer.clone();
            drop(runtime.spawn_blocking(move || {
                let result: Vec<u8> = (job.work)();
                drop(permit);
                drop(answer.send(result));
            }));
        }
        drop(answer);
        taker.join().expect("it does not panic")
    })
}
