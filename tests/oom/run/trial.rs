//! The trials: what is run, how, and what has to come of it.

use admit::MIB;
use clap::ValueEnum;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// scrypt jobs of 32 MiB in 384 MiB (study A2).
    Scrypt32,
    /// scrypt jobs of 64 MiB, beside 32 MiB of the program's own (study A4).
    Scrypt64,
    /// scrypt jobs of 128 MiB (study A5).
    Scrypt128,
    /// A producer of gzip jobs that is faster than they are, in 192 MiB (study A6).
    Gzip,
    /// 48 scrypt jobs of 16, 64 and 128 MiB.
    Mixed,
    /// scrypt jobs of 64 KiB to 64 MiB.
    Spread,
    /// Jobs whose results a slow consumer keeps.
    Kept,
    /// Jobs of many small blocks, and then large ones.
    Parse,
    /// Jobs of a few blocks of 7 MiB, and then large ones.
    Buffers,
    /// The limit is lowered to two thirds while jobs run.
    Lowered,
    /// More threads than the group may have.
    Pids,
}

/// How it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// 16 workers with nothing to do: the baseline.
    Idle,
    /// A pool of threads with an unbounded queue.
    Plain1,
    Plain4,
    /// One thread for each 64 MiB of the limit.
    Plain6,
    Plain16,
    /// A semaphore of bytes in front of tokio's blocking threads.
    Tokio,
    /// 16 workers and a budget that finds its limit.
    Admit,
    /// An executor that is told nothing.
    Default,
    /// 16 workers, and the allocator left alone.
    LeftAlone,
    /// 16 workers and the limit that was there in the beginning.
    Unaware,
    /// 16 workers, with another allocator.
    Jemalloc,
    Mimalloc,
    /// The same, told to return what is freed at once.
    JemallocPurging,
    MimallocPurging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Lives,
    Killed,
    /// Ends because no more threads can be started.
    NoThreads,
    /// Either, and reported.
    Any,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: Name,
    pub(crate) how: How,
    pub(crate) expected: Expected,
}

const CASES: [(Name, How, Expected); 33] = {
    use Expected::{Any, Killed, Lives, NoThreads};
    [
        (Name::Scrypt32, How::Plain4, Lives),
        (Name::Scrypt32, How::Plain16, Killed),
        (Name::Scrypt32, How::Admit, Lives),
        (Name::Scrypt32, How::Default, Lives),
        (Name::Scrypt128, How::Plain4, Killed),
        (Name::Scrypt128, How::Admit, Lives),
        (Name::Scrypt32, How::Plain6, Lives),
        (Name::Scrypt64, How::Plain6, Killed),
        (Name::Scrypt64, How::Admit, Lives),
        (Name::Gzip, How::Plain1, Killed),
        (Name::Gzip, How::Plain4, Killed),
        (Name::Gzip, How::Admit, Lives),
        (Name::Mixed, How::Plain16, Killed),
        (Name::Mixed, How::Tokio, Any),
        (Name::Mixed, How::LeftAlone, Any),
        (Name::Mixed, How::Admit, Lives),
        (Name::Mixed, How::Jemalloc, Any),
        (Name::Mixed, How::Mimalloc, Any),
        (Name::Mixed, How::JemallocPurging, Any),
        (Name::Mixed, How::MimallocPurging, Lives),
        (Name::Spread, How::Plain16, Killed),
        (Name::Spread, How::Admit, Lives),
        (Name::Kept, How::Plain4, Killed),
        (Name::Kept, How::Admit, Lives),
        (Name::Parse, How::LeftAlone, Killed),
        (Name::Parse, How::Admit, Lives),
        (Name::Buffers, How::Plain16, Killed),
        (Name::Buffers, How::LeftAlone, Any),
        (Name::Buffers, How::Admit, Lives),
        (Name::Lowered, How::Unaware, Killed),
        (Name::Lowered, How::Admit, Lives),
        (Name::Pids, How::Plain16, NoThreads),
        (Name::Pids, How::Admit, Lives),
    ]
};

pub(crate) fn cases(filter: &str) -> Vec<Case> {
    let cases = CASES.map(|(name, how, expected)| Case { name, how, expected });
    cases.into_iter().filter(|case| case.title().contains(filter)).collect()
}

impl Case {
    /// The others are controls, or there to compare with.
    pub(crate) fn is_on_trial(&self) -> bool {
        matches!(self.how, How::Admit | How::Default)
    }

    pub(crate) fn title(&self) -> String {
        let name = |value: Option<clap::builder::PossibleValue>| {
            value.map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        format!("{} {}", name(self.name.to_possible_value()), name(self.how.to_possible_value()))
    }
}

impl Name {
    /// The limit of the memory control group, on the full scale.
    pub(crate) fn limit_bytes(self) -> u64 {
        match self {
            Name::Gzip => 192 * MIB,
            _ => 384 * MIB,
        }
    }
}
