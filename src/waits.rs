//! Which jobs wait for what, so that no circle of them is closed.
//!
//! Only waits that end by nothing but what is waited for are kept: not those with a timeout.

use std::time::Instant;

use crate::answer::JobId;
use crate::running::{self, Employer, Running};
use crate::sys::fork::PerProcess;

/// What a job may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The end of a job that a worker has, or will have.
    Job(JobId),
    /// A place, bytes or a worker of the budget with this gate: any of the jobs that run there may
    /// have to end first.
    Budget(usize),
    /// The end of all jobs of an executor.
    Executor(Employer),
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    number: u64,
    job: JobId,
    /// Whose worker the job occupies, and whose job it is.
    at: Employer,
    of: Employer,
    target: Target,
}

struct Waits {
    last: u64,
    waits: Vec<Wait>,
}

static WAITS: PerProcess<Waits> = PerProcess::new(|| Waits { last: 0, waits: Vec::new() });

/// The caller would wait for itself, directly or through others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Circle;

/// Stands for a wait while it lasts. Of a caller that runs no job there is none to stand for.
#[derive(Debug)]
pub(crate) struct Waiting(Option<u64>);

/// The job that runs on this thread begins to wait.
pub(crate) fn begin(target: Target) -> Result<Waiting, Circle> {
    let (Some(running), Some(employer)) = (running::current(), running::employer()) else {
        return Ok(Waiting(None));
    };
    let mut all = WAITS.lock();
    if all.leads_to(target, &running, employer) {
        return Err(Circle);
    }
    Ok(all.add(&running, employer, target))
}

/// The job that runs on this thread will wait, whatever comes of it: so that others do not close a
/// circle.
pub(crate) fn commit(target: Target) -> Waiting {
    match (running::current(), running::employer()) {
        (Some(running), Some(employer)) => WAITS.lock().add(&running, employer, target),
        _ => Waiting(None),
    }
}

/// The same, unless the wait ends by itself.
pub(crate) fn begin_until(deadline: Option<Instant>, target: Target) -> Result<Waiting, Circle> {
    if deadline.is_some() { Ok(Waiting(None)) } else { begin(target) }
}

impl Waits {
    fn add(&mut self, running: &Running, at: Employer, target: Target) -> Waiting {
        self.last += 1;
        let (number, job, of) = (self.last, running.id, running.of);
        self.waits.push(Wait { number, job, at, of, target });
        Waiting(Some(number))
    }

    /// Whether what is waited for waits, through whatever others, for the job, or for anything of
    /// the budget whose worker it occupies.
    fn leads_to(&self, target: Target, running: &Running, at: Employer) -> bool {
        let (mut found, mut next) = (vec![target], 0);
        while let Some(target) = found.get(next).copied() {
            next += 1;
            let is_own = match target {
                Target::Job(job) => job == running.id,
                Target::Budget(gate) => gate == at.gate,
                Target::Executor(executor) => executor == at || executor == running.of,
            };
            if is_own {
                return true;
            }
            let its_waits = self.waits.iter().filter(|wait| match target {
                Target::Job(job) => wait.job == job,
                Target::Budget(gate) => wait.at.gate == gate,
                Target::Executor(executor) => wait.at == executor || wait.of == executor,
            });
            for wait in its_waits {
                if !found.contains(&wait.target) {
                    found.push(wait.target);
                }
            }
        }
        false
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            WAITS.lock().waits.retain(|wait| wait.number != number);
        }
    }
}
