//! The threads that handle connections.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// They only receive, hand over and send; what takes a processor for longer is a job. A timer, a
/// body, or a refusal waits for such a thread, so that what blocks one delays what has nothing to do with it.
pub(crate) fn runtime(async_workers: u16) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(usize::from(async_workers)).enable_all().build()
}
