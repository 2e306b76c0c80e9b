//! Processor time.

use std::time::Duration;

/// How long this thread has had a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime {
    at: Duration,
}

impl ThreadTime {
    pub(crate) fn now() -> ThreadTime {
        ThreadTime { at: read(libc::CLOCK_THREAD_CPUTIME_ID) }
    }

    pub(crate) fn elapsed(self) -> Duration {
        read(libc::CLOCK_THREAD_CPUTIME_ID) - self.at
    }
}

/// How long this process has had processors.
pub(crate) fn of_process() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[allow(unsafe_code)]
fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call to write to.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0, "both clocks exist on Linux");
    let nanos = u32::try_from(time.tv_nsec).expect("below a billion");
    Duration::new(u64::try_from(time.tv_sec).expect("not negative"), nanos)
}
