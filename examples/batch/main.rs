//! Hashes with scrypt and compresses with gzip: a mixed batch behind one memory budget.
//!
//! `cargo run --release --example batch` needs no argument; `-- --help` lists the options.
//! Every result is checked: a hash against RFC 7914 or an earlier run with the same parameters,
//! a compressed file by decompressing it again.
//!
//! The exit status is 0 if all is well and 2 if an option or an input is bad or a check fails.

mod answers;
mod batch;
mod gzip;
mod hash;
mod input;
mod options;
mod report;
mod tally;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use admit::{Budget, BuildError, Executor};
use clap::Parser;

use crate::answers::Answers;
use crate::batch::Batch;
use crate::options::Options;
use crate::report::Report;
use crate::tally::Tally;

const FAILURE: u8 = 2;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILURE),
        Err(error) => {
            // Not `eprintln`, which panics when nobody reads any more.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(FAILURE)
        }
    }
}

/// Does everything, and says how many inputs and jobs failed.
fn run(options: &Options) -> Result<u64, Box<dyn Error>> {
    let start = Instant::now();
    let executor = build_executor(options)?;
    if options.hashes > 0 {
        for hash in &options.sizes {
            executor.check(hash.cost()).map_err(|refused| format!("--sizes: {hash}: {refused}"))?;
        }
    }

    let tally = Tally::new(options.progress_bar());
    let answers = Answers::of_rfc_7914();
    executor.scope(|scope| Batch::new(scope, &executor, &tally, &answers).submit(options));

    let totals = tally.finish();
    let stats = executor.stats();
    let report = Report::new(&stats, &totals, start.elapsed());
    print(&report, options.json).map_err(|error| format!("standard output: {error}"))?;
    // A job that panicked has no part in the totals; its message is on standard error already.
    Ok(totals.failures + stats.counts.panicked)
}

fn build_executor(options: &Options) -> Result<Executor, BuildError> {
    Executor::builder()
        .workers(options.workers())
        .budget(Budget::new(options.memory, options.reserve)?)
        .waiting_bytes(options.waiting)
        .capacity(options.queue)
        .build()
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let printed = if json { report.write_json(&mut stdout) } else { report.write(&mut stdout) };
    match printed.and_then(|()| stdout.flush()) {
        // Whoever read the report has seen enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
