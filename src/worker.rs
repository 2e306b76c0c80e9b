//! The life of a worker thread.

use std::sync::Arc;

use crate::answer::{JobId, Slot};
use crate::bench::{Done, Grant, Rank};
use crate::job::{Job, drop_quietly};
use crate::retention::LEAST_JOB_BYTES;
use crate::running::{self, Running};
use crate::shared::Shared;
use crate::sync::{self, Ordering, SPIN_ROUNDS};
use crate::sys::clock::Moment;
use crate::sys::nice;
use crate::waiter::Waiter;

/// Fetches jobs and runs them until the executor is closed and nothing is left. `number` is which
/// of the executor's workers this is.
pub(crate) fn run(shared: Arc<Shared>, number: usize, rank: Rank) {
    if rank == Rank::Low {
        nice::lower_this_thread();
    }
    running::work_for(shared.id().as_employer());
    let bench = Arc::new(Waiter::new());
    let mut next = None;
    // ADMIT
    while let Some(Grant { job, bytes, since, expires, slot, seq, .. }) =
        next.or_else(|| fetch(&shared, &bench, rank))
    {
        let now = Moment::now();
        let waited = now.since(since);
        // RUN
        let (place, executor) = (Slot { crew: shared.crew, slot, seq }, shared.id());
        let id = JobId { gate: executor.place.gate, seq };
        let ((job, ended), ran) = if expires > now {
            let running = Running { job, id, of: executor.place, executor, slot: place };
            running::timed(|| running::run(running))
        } else {
            let ended = job.expire();
            ((job, ended), None)
        };
        if let Some(retention) = shared.retention.as_ref().filter(|_| bytes >= LEAST_JOB_BYTES) {
            // Without what the job still holds: kept bytes are others' now.
            let others_bytes = || {
                shared
                    .gate
                    .change(|state| state.ledger().held_bytes - state.held_by(place).unwrap_or(0))
            };
            retention.check(number, bytes, others_bytes);
        }
        // RELEASE, and fetch what that made room for. The closure is gone already (I4).
        next = shared.gate.finish(shared.crew, rank, Done { slot, ended, waited, ran });
        // COMPLETE
        job.complete();
        // With the last reference goes the payload of a panic that nobody asked for.
        drop_quietly(job);
    }
}

/// What a worker does that found no job.
enum Rest {
    /// Looks again soon, awake.
    Awake,
    /// Lies down until it is told.
    Benched,
    /// Leaves: there will be no more jobs.
    Over,
}

/// Waits for an admitted job. `None` when there will be none.
fn fetch(shared: &Shared, bench: &Arc<Waiter>, rank: Rank) -> Option<Grant<Arc<dyn Job>>> {
    let mut was_told = false;
    let mut was_awake = false;
    loop {
        let mut rest = Rest::Over;
        let grant = shared.gate.change(|state| {
            if was_told {
                state.arrive(shared.crew, rank);
            }
            shared.gate.forget_news();
            let grant = state.take(shared.crew, rank);
            if grant.is_none() && !state.may_leave(shared.crew, rank) {
                // The first to find nothing stays awake for a moment. Work that comes in quick
                // succession then needs no system call to be run, and no more than one
                // processor is kept busy with waiting.
                if !was_awake && !shared.spinning.swap(true, Ordering::Relaxed) {
                    state.stay_awake(shared.crew, rank);
                    rest = Rest::Awake;
                } else {
                    bench.reset();
                    state.bench(shared.crew, Arc::clone(bench), rank);
                    rest = Rest::Benched;
                }
            }
            grant
        });
        match (grant, rest) {
            (Some(grant), _) => return Some(grant),
            (None, Rest::Over) => return None,
            (None, Rest::Awake) => {
                watch(shared);
                shared.spinning.store(false, Ordering::Relaxed);
                was_awake = true;
            }
            (None, Rest::Benched) => {
                while bench.sleep(None).is_none() {}
                was_awake = false;
            }
        }
        was_told = true;
    }
}

/// Waits for news, awake, about as long as it takes to fall asleep and be woken.
fn watch(shared: &Shared) {
    for round in 0..SPIN_ROUNDS {
        if shared.gate.has_news() {
            return;
        }
        sync::spin(round);
    }
}
