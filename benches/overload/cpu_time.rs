//! Processor time.

use std::fs;
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

/// What all processors of the machine have done since it started, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    idle: u64,
    all: u64,
}

impl Machine {
    pub(crate) fn now() -> Option<Machine> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let (first, _) = stat.split_once('\n')?;
        // user, nice, system, idle, waiting for the disk, interrupts (2), stolen; what follows is part of user.
        let ticks: Vec<u64> =
            first.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        Some(Machine { idle: ticks.get(3)? + ticks.get(4)?, all: ticks.iter().sum() })
    }

    /// The part of the time since then in which a processor had nothing to do.
    pub(crate) fn idle_since(self, before: Machine) -> f64 {
        (self.idle - before.idle) as f64 / (self.all - before.all).max(1) as f64
    }
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
