//! One sample: what is measured, by a process of its own.

use std::process::{Command, Stdio};

use clap::{Parser, ValueEnum};

use crate::pools::PoolName;
use crate::{burst, round_trip};

/// What a process is to measure.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true)]
pub(crate) struct Sample {
    pub(crate) what: What,
    pub(crate) pool: PoolName,
    pub(crate) producers: usize,
    pub(crate) workers: usize,
    /// On one processor.
    #[arg(long)]
    pub(crate) one_cpu: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum What {
    Burst,
    RoundTrip,
    AsyncRoundTrip,
}

impl Sample {
    /// The figures that this process measures.
    pub(crate) fn measure(&self) -> Vec<f64> {
        match self.what {
            What::Burst => burst::measure(self),
            What::RoundTrip => round_trip::measure(self),
            What::AsyncRoundTrip => round_trip::measure_async(self),
        }
    }

    /// The figures that another process measures.
    pub(crate) fn take(&self) -> Vec<f64> {
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = if self.one_cpu {
            let mut pinned = Command::new("taskset");
            pinned.args(["--cpu-list", "0"]).arg(program);
            pinned
        } else {
            Command::new(program)
        };
        let name = |it: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            it().expect("none is skipped").get_name().to_owned()
        };
        command
            .arg("--sample")
            .args([
                name(&|| self.what.to_possible_value()),
                name(&|| self.pool.to_possible_value()),
            ])
            .args([self.producers.to_string(), self.workers.to_string()])
            // How many threads this pool has is nowhere else to be said.
            .env("BLOCKING_MAX_THREADS", self.workers.to_string())
            .stderr(Stdio::inherit());
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(output.status.success(), "{command:?}: {}", output.status);
        let figures = String::from_utf8(output.stdout).expect("figures");
        figures.lines().map(|line| line.parse().expect("a figure")).collect()
    }
}
