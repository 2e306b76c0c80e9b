//! Which jobs wait for what, so that no circle of them is closed.
//!
//! Only waits that end by nothing but what is waited for are kept: not those with a timeout.

use std::time::Instant;

use crate::answer::JobId;
use crate::running::{self, Employer};
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
    /// Whose worker the job occupies.
    at: Employer,
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
    if all.leads_to(target, running.id, employer) {
        return Err(Circle);
    }
    all.last += 1;
    let number = all.last;
    all.waits.push(Wait { number, job: running.id, at: employer, target });
    Ok(Waiting(Some(number)))
}

/// The same, unless the wait ends by itself.
pub(crate) fn begin_until(deadline: Option<Instant>, target: Target) -> Result<Waiting, Circle> {
    if deadline.is_some() { Ok(Waiting(None)) } else { begin(target) }
}

impl Waits {
    /// Whether what is waited for waits, through whatever others, for the job, or for anything of
    /// the budget whose worker it occupies.
    fn leads_to(&self, target: Target, job: JobId, at: Employer) -> bool {
        let (mut found, mut next) = (vec![target], 0);
        while let Some(target) = found.get(next).copied() {
            next += 1;
            let own = [Target::Job(job), Target::Budget(at.gate), Target::Executor(at)];
            if own.contains(&target) {
                return true;
            }
            let its_waits = self.waits.iter().filter(|wait| match target {
                Target::Job(job) => wait.job == job,
                Target::Budget(gate) => wait.at.gate == gate,
                Target::Executor(employer) => wait.at == employer,
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
