//! What has been done so far.

use std::fmt::Display;
use std::io::{self, Write};

use indicatif::ProgressBar;
use parking_lot::Mutex;

/// What a job has done.
#[derive(Debug)]
pub(crate) enum Done {
    Vector,
    Hash { was_compared: bool },
    Gzip { input_bytes: u64, output_bytes: u64 },
}

/// What all of them have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) vectors: u64,
    pub(crate) hashes: u64,
    pub(crate) hashes_compared: u64,
    pub(crate) files: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    /// Bad inputs, and jobs whose result is wrong.
    pub(crate) failures: u64,
}

/// Counts, shows progress, and reports what goes wrong as soon as it does.
#[derive(Debug)]
pub(crate) struct Tally {
    bar: ProgressBar,
    totals: Mutex<Totals>,
}

impl Tally {
    pub(crate) fn new(bar: ProgressBar) -> Tally {
        Tally { bar, totals: Mutex::default() }
    }

    /// A job is about to be submitted.
    pub(crate) fn expect_job(&self) {
        self.bar.inc_length(1);
    }

    /// A job has ended.
    pub(crate) fn record(&self, done: Result<Done, impl Display>) {
        match done {
            Ok(Done::Vector) => self.totals.lock().vectors += 1,
            Ok(Done::Hash { was_compared }) => {
                let mut totals = self.totals.lock();
                totals.hashes += 1;
                totals.hashes_compared += u64::from(was_compared);
            }
            Ok(Done::Gzip { input_bytes, output_bytes }) => {
                let mut totals = self.totals.lock();
                totals.files += 1;
                totals.input_bytes += input_bytes;
                totals.output_bytes += output_bytes;
            }
            Err(reason) => self.fail(reason),
        }
        self.bar.inc(1);
    }

    pub(crate) fn fail(&self, reason: impl Display) {
        self.totals.lock().failures += 1;
        self.note(format_args!("error: {reason}"));
    }

    pub(crate) fn note(&self, text: impl Display) {
        // Not `eprintln`, which panics when nobody reads any more.
        self.bar.suspend(|| drop(writeln!(io::stderr(), "{text}")));
    }

    pub(crate) fn finish(&self) -> Totals {
        self.bar.finish_and_clear();
        *self.totals.lock()
    }
}
