//! Who gets what, and who is sent away: all of the service's policy.

use std::io;
use std::num::NonZero;
use std::thread;
use std::time::Duration;

use admit::{Budget, BuildError, Executor, Lane, LaneOptions, MIB, Overtaking, Reserve};

use crate::options::Options;

/// The largest log_n of a light hash, which takes 4 MiB and some ten milliseconds.
const LIGHT_LOG_N: u8 = 12;
/// The largest log_n of a hash of middle size.
const MEDIUM_LOG_N: u8 = 16;

/// Workers for light hashes alone. The system prefers them to the others, and the threads that handle
/// connections as well.
const LIGHT_WORKERS: usize = 1;
/// How many later jobs may pass one that does not fit yet beside what runs: two large ones do not fit
/// together, and a processor would be idle meanwhile.
const OVERTAKING: u32 = 8;
/// What waits besides uploads: bodies of hashes, which are small.
const SMALL_BODIES_BYTES: u64 = 2 * MIB;
/// How often the memory limit is looked at again, unless it is given.
const REDETECT_EVERY: Duration = Duration::from_secs(5);

/// Where requests go. All jobs have to start within a time, and a lane has room for about as many as
/// can.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// Logins, which must answer at once.
    pub(crate) light: Lane,
    /// Hashes of up to 64 MiB, and above.
    medium: Lane,
    large: Lane,
    pub(crate) gzip: Lane,
    pub(crate) thumbnail: Lane,
}

/// Light hashes have a worker and some memory of their own. What is heavy shares the rest, each
/// kind its equal part of it, and few of a kind may wait: who comes then is better off elsewhere, or
/// later. Uploads that do not come fill their own lane only, and connections that do not go on asking for
/// a light hash are as many as there may be.
pub(crate) fn executor(options: &Options) -> Result<Executor, BuildError> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let uploads_bytes = options.waiting.saturating_sub(SMALL_BODIES_BYTES) / 2;
    let builder = match options.memory {
        Some(_) => Executor::builder(),
        None => Executor::builder().redetect_every(REDETECT_EVERY),
    };
    builder
        .workers(options.workers.map_or(processors + 1, usize::from))
        .nice_beyond(LIGHT_WORKERS)
        .budget(budget(options)?)
        .waiting_bytes(options.waiting)
        .capacity(0) // nothing goes to the default lane
        .lane(
            LaneOptions::new("light")
                .capacity(options.connections as usize)
                .guaranteed_workers(LIGHT_WORKERS)
                .guaranteed_bytes(8 * MIB),
        )
        .lane(LaneOptions::new("hash-medium").capacity(8))
        // A share is of bytes and time: twice the bytes of the others, for the same time.
        .lane(LaneOptions::new("hash-large").capacity(4).share(2))
        .lane(LaneOptions::new("gzip").capacity(6).input_bytes(uploads_bytes))
        .lane(LaneOptions::new("thumbnail").capacity(8).input_bytes(uploads_bytes))
        .build()
}

fn budget(options: &Options) -> Result<Budget, BuildError> {
    let reserve = match options.reserve {
        Some(bytes) => Reserve::bytes(bytes),
        None => Reserve::fraction(0.125).at_least(72 * MIB),
    };
    let budget = match options.memory {
        Some(bytes) => Budget::new(bytes, reserve.of(bytes)?),
        None => Budget::detect_with(reserve),
    }?;
    budget.set_overtaking(Overtaking::at_most(OVERTAKING));
    Ok(budget)
}

impl Lanes {
    pub(crate) fn of(executor: &Executor) -> io::Result<Lanes> {
        let lane =
            |name: &str| executor.lane(name).ok_or_else(|| io::Error::other(name.to_owned()));
        Ok(Lanes {
            light: lane("light")?,
            medium: lane("hash-medium")?,
            large: lane("hash-large")?,
            gzip: lane("gzip")?,
            thumbnail: lane("thumbnail")?,
        })
    }

    pub(crate) fn of_hash(&self, log_n: u8) -> &Lane {
        if log_n <= LIGHT_LOG_N {
            &self.light
        } else if log_n <= MEDIUM_LOG_N {
            &self.medium
        } else {
            &self.large
        }
    }
}
