//! A hang is a failure that names its test, not a stuck run.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Seconds, unless `ADMIT_TEST_PATIENCE` says otherwise: far above what the slowest test takes.
const PATIENCE: u64 = 60;

/// Ends the process if it is not dropped in time. Made first in a test, it is dropped last: it
/// watches the drops of everything else too.
pub(crate) struct Watchdog(#[allow(dead_code, reason = "dropping it ends the watch")] Sender<()>);

impl Watchdog {
    pub(crate) fn over(test: &'static str) -> Watchdog {
        let seconds =
            std::env::var("ADMIT_TEST_PATIENCE").map_or(PATIENCE, |text| text.parse().unwrap());
        let patience = Duration::from_secs(seconds);
        let (test_ends, watch) = channel::<()>();
        thread::spawn(move || {
            if let Err(RecvTimeoutError::Timeout) = watch.recv_timeout(patience) {
                // Not `eprintln!`, whose text the harness keeps to itself until the test has ended.
                let _ = writeln!(std::io::stderr(), "watchdog: {test} hangs");
                std::process::abort();
            }
        });
        Watchdog(test_ends)
    }
}

/// Names the enclosing function, which the thread's name does not when tests run one by one.
macro_rules! watch {
    () => {{
        fn here() {}
        crate::watchdog::Watchdog::over(std::any::type_name_of_val(&here))
    }};
}
pub(crate) use watch;
