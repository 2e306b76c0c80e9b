//! The life of a worker thread.

use std::sync::Arc;

use crate::context;
use crate::crew::{Done, Grant};
use crate::job::Job;
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::sys::clock::Moment;
use crate::waiter::Waiter;

/// Fetches jobs and runs them until the executor is closed and nothing is left.
pub(crate) fn run(shared: Arc<Shared>) {
    context::work_for(shared.as_employer());
    let bench = Arc::new(Waiter::new());
    let mut next = None;
    // ADMIT
    while let Some(Grant { job, lane, bytes, since }) = next.or_else(|| fetch(&shared, &bench)) {
        let waited = Moment::now().since(since);
        // RUN
        let (job, ended) = context::run(job);
        // RELEASE, and fetch what that made room for. The closure is gone already (I4).
        next = shared
            .gate
            .change(|state| state.finish(shared.crew, Done { lane, bytes, ended, waited }));
        // COMPLETE
        job.complete();
    }
}

/// Waits for an admitted job. `None` when there will be none.
fn fetch(shared: &Shared, bench: &Arc<Waiter>) -> Option<Grant<Arc<dyn Job>>> {
    let mut was_told = false;
    loop {
        let mut is_over = false;
        let grant = shared.gate.change(|state| {
            if std::mem::take(&mut was_told) {
                state.arrive(shared.crew);
            }
            let grant = state.take(shared.crew);
            if grant.is_none() {
                is_over = state.may_leave(shared.crew);
                if !is_over {
                    bench.reset();
                    state.bench(shared.crew, Arc::clone(bench));
                }
            }
            grant
        });
        if grant.is_some() || is_over {
            return grant;
        }
        rest(shared, bench);
        was_told = true;
    }
}

/// Lies on the bench until told. The first to lie down stays awake for a moment: work that
/// comes in quick succession then finds a worker without a system call, and no more than one
/// processor is kept busy with waiting.
fn rest(shared: &Shared, bench: &Waiter) {
    if !shared.spinning.swap(true, Ordering::Relaxed) {
        let told = bench.spin();
        shared.spinning.store(false, Ordering::Relaxed);
        if told.is_some() {
            return;
        }
    }
    while bench.sleep(None).is_none() {}
}
