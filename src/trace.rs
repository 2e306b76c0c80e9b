//! What jobs tell to [tracing](https://docs.rs/tracing). Without the feature: nothing, at no cost.
//!
//! All of it is at level DEBUG and with the target `admit`. A subscriber is the user's code: it is called on
//! the thread that submits, runs or ends a job, with no lock held. What it panics with is dropped: the job goes
//! on as if nobody listened, for it may have half of its way behind it, and a scope may count on its end.

use crate::cost::Cost;
use crate::error::{JoinError, Refused};

#[cfg(feature = "tracing")]
pub(crate) use on::{Trace, refused};

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Trace, refused};

#[cfg(feature = "tracing")]
mod on {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::time::Instant;

    use tracing::{Span, debug, debug_span};

    use super::{Cost, JoinError, Refused};

    /// A job's span, from its submission until nobody knows the job any more. It is a child of the
    /// submitter's span, and entered while the job runs.
    pub(crate) struct Trace {
        span: Span,
        submitted: Instant,
    }

    impl Trace {
        pub(crate) fn of_job(lane: &str, cost: Cost) -> Trace {
            let (working_bytes, input_bytes) = (cost.working_bytes(), cost.input_bytes());
            let span =
                quietly(|| debug_span!(target: "admit", "job", lane, working_bytes, input_bytes));
            Trace { span: span.unwrap_or_else(Span::none), submitted: Instant::now() }
        }

        /// Runs the job's closure. What it panics with goes on.
        pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            let started = Instant::now();
            let waited_us = started.duration_since(self.submitted).as_micros() as u64;
            self.tell(|| debug!(target: "admit", waited_us, "started"));
            let entered = quietly(|| self.span.enter());
            // Caught here, because a subscriber that panics while the job's panic unwinds would abort.
            let result = catch_unwind(AssertUnwindSafe(work));
            let ran_us = started.elapsed().as_micros() as u64;
            quietly(|| drop(entered));
            let result = result.unwrap_or_else(|payload| resume_unwind(payload));
            self.tell(|| debug!(target: "admit", ran_us, "completed"));
            result
        }

        /// There is no value.
        pub(crate) fn failed(&self, error: &JoinError) {
            let after_us = self.submitted.elapsed().as_micros() as u64;
            self.tell(|| debug!(target: "admit", after_us, %error, "failed"));
        }

        fn tell(&self, event: impl FnOnce()) {
            // Not `in_scope`: an event that panics must not meet an exit that panics as well.
            let entered = quietly(|| self.span.enter());
            quietly(event);
            quietly(|| drop(entered));
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            let span = std::mem::replace(&mut self.span, Span::none());
            quietly(|| drop(span));
        }
    }

    /// Calls the subscriber. `None` if that panics.
    fn quietly<R>(call: impl FnOnce() -> R) -> Option<R> {
        // A payload may panic when it is dropped.
        catch_unwind(AssertUnwindSafe(call)).map_err(std::mem::forget).ok()
    }

    pub(crate) fn refused(lane: &str, cost: Cost, reason: &Refused) {
        let (working_bytes, input_bytes) = (cost.working_bytes(), cost.input_bytes());
        let event =
            || debug!(target: "admit", lane, working_bytes, input_bytes, %reason, "refused");
        quietly(event);
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use super::{Cost, JoinError, Refused};

    pub(crate) struct Trace;

    impl Trace {
        #[inline]
        pub(crate) fn of_job(_lane: &str, _cost: Cost) -> Trace {
            Trace
        }

        #[inline]
        pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            work()
        }

        #[inline]
        pub(crate) fn failed(&self, _error: &JoinError) {}
    }

    #[inline]
    pub(crate) fn refused(_lane: &str, _cost: Cost, _reason: &Refused) {}
}
