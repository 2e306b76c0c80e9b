//! What jobs tell to [tracing](https://docs.rs/tracing). Without the feature: nothing, at no cost.
//!
//! All of it is at level DEBUG and with the target `admit`. A subscriber is the user's code: it is called on
//! the thread that submits, runs or ends a job, with no lock held, and if it panics there, that is caught.

use crate::cost::Cost;
use crate::error::{JoinError, Refused};

#[cfg(feature = "tracing")]
pub(crate) use on::{Trace, refused};

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Trace, refused};

#[cfg(feature = "tracing")]
mod on {
    use std::panic::{AssertUnwindSafe, catch_unwind};
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
            let span = debug_span!(target: "admit", "job", lane, working_bytes, input_bytes);
            Trace { span, submitted: Instant::now() }
        }

        /// Runs the job's closure. What it panics with goes on.
        pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            let started = Instant::now();
            let waited_us = started.duration_since(self.submitted).as_micros() as u64;
            self.tell(|| debug!(target: "admit", waited_us, "started"));
            let result = self.span.in_scope(work);
            let ran_us = started.elapsed().as_micros() as u64;
            self.tell(|| debug!(target: "admit", ran_us, "completed"));
            result
        }

        /// There is no value.
        pub(crate) fn failed(&self, error: &JoinError) {
            let after_us = self.submitted.elapsed().as_micros() as u64;
            self.tell(|| debug!(target: "admit", after_us, %error, "failed"));
        }

        fn tell(&self, event: impl FnOnce()) {
            let told = catch_unwind(AssertUnwindSafe(|| self.span.in_scope(event)));
            std::mem::forget(told);
        }
    }

    pub(crate) fn refused(lane: &str, cost: Cost, reason: &Refused) {
        let (working_bytes, input_bytes) = (cost.working_bytes(), cost.input_bytes());
        debug!(target: "admit", lane, working_bytes, input_bytes, %reason, "refused");
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
