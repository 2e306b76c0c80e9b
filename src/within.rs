//! A job that waits for one that has not started runs it itself.
//!
//! So it does not depend on a worker that is free, or on bytes, when it may be what occupies them.

use std::sync::Arc;

use crate::answer::{JobId, Ticket, Within};
use crate::job::drop_quietly;
use crate::running::{self, ExecutorId, Running};
use crate::sys::clock::Moment;
use crate::waits::{self, Target};

/// What became of a job that another one waits for.
pub(crate) enum Joined {
    /// It was run, and its handle knows.
    Ran,
    /// It has not started, and needs more than the one that waits holds.
    Above { needed_bytes: u64, held_bytes: u64 },
    /// A worker has it or will have it, or it has ended.
    Elsewhere,
}

/// Runs a job within the running one, if it has not started and the bytes of that one suffice.
pub(crate) fn run(running: &Running, executor: ExecutorId, ticket: Ticket) -> Joined {
    let parent = running.executor.find();
    let held_bytes =
        parent.and_then(|parent| parent.gate.change(|state| state.held_by(running.slot)));
    let held_bytes = held_bytes.unwrap_or(0);
    let Some(shared) = executor.find() else { return Joined::Elsewhere };
    match shared.gate.change(|state| state.begin_within(ticket, held_bytes)) {
        Within::Elsewhere => Joined::Elsewhere,
        Within::Above { needed_bytes } => Joined::Above { needed_bytes, held_bytes },
        Within::Runs { job, input_bytes, since } => {
            let id = JobId { gate: executor.place.gate, seq: ticket.seq };
            // No circle: a job that has not started waits for nothing.
            let waiting = waits::begin(Target::Job(id));
            let waited = Moment::now().since(since);
            let within =
                Running { job: Arc::clone(&job), id, of: executor.place, ..running.clone() };
            let (ended, ran) = running::timed(|| running::run_within(within));
            drop(waiting);
            shared
                .gate
                .change(|state| state.end_within(ticket.at, input_bytes, ended, waited, ran));
            job.complete();
            drop_quietly(job);
            Joined::Ran
        }
    }
}
