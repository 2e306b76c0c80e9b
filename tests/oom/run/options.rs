//! What the command line says.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::trial::{Case, Expected, How, Name};

/// Runs jobs in memory control groups and reports whether the kernel killed them.
#[derive(Parser)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    /// Only trials and variants whose name has this in it.
    #[arg(default_value = "")]
    pub(crate) filter: String,
    /// How often each variant of `admit` that has to live is run; the others, three times at most.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    pub(crate) runs: usize,
    /// Also boots a machine in software emulation, with cgroup v2, and runs the trials there.
    #[arg(long)]
    pub(crate) emulated: bool,
    /// Boots it and runs nothing here.
    #[arg(long)]
    pub(crate) only_emulated: bool,
    /// How often there.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    pub(crate) runs_emulated: usize,
    /// What cannot be run is a failure.
    #[arg(long)]
    pub(crate) require: bool,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// How large limits and jobs are.
    #[arg(long, value_enum, default_value_t = Scale::Full)]
    pub(crate) scale: Scale,
    /// Given by cargo, and of no meaning here.
    #[arg(long, short, hide = true)]
    quiet: bool,
    /// The same.
    #[arg(long, hide = true)]
    nocapture: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err(String::from("one run at least")),
        Ok(runs) => Ok(runs),
        Err(why) => Err(format!("{why}")),
    }
}

impl Options {
    /// A control that dies three times of three tells as much as one that dies twenty times, and
    /// what may do either is only to be seen.
    pub(crate) fn runs_of(&self, case: &Case) -> usize {
        match case.expected {
            _ if case.is_on_trial() => self.runs,
            Expected::Any => 1,
            _ => self.runs.min(3),
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Mode {
    /// Runs one variant of one trial in this process.
    #[command(hide = true)]
    Child(Child),
}

#[derive(Args)]
pub(crate) struct Child {
    #[arg(long, value_enum)]
    pub(crate) name: Name,
    #[arg(long, value_enum)]
    pub(crate) how: How,
    #[arg(long, value_enum)]
    pub(crate) scale: Scale,
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many times over the jobs are to be done.
    #[arg(long)]
    pub(crate) batches: u64,
    /// The process without which this one has nobody to report to.
    #[arg(long)]
    pub(crate) parent: u32,
    /// The control groups to enter first.
    #[arg(long)]
    pub(crate) group: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// A limit of 384 MiB, jobs of up to 128 MiB.
    Full,
    /// A quarter of that, for a machine that is emulated.
    Quarter,
}

impl Scale {
    /// The scale of a trial on a machine of this one. What the encoder of gzip needs beside its
    /// input does not scale, and would be a large part of a quarter of the memory.
    pub(crate) fn of(self, name: Name) -> Scale {
        if name == Name::Gzip { Scale::Full } else { self }
    }

    /// Bytes on the full scale, on this one.
    pub(crate) fn bytes(self, full: u64) -> u64 {
        match self {
            Scale::Full => full,
            Scale::Quarter => full / 4,
        }
    }

    /// The logarithm of a number of bytes.
    pub(crate) fn log(self, full: u8) -> u8 {
        match self {
            Scale::Full => full,
            Scale::Quarter => full - 2,
        }
    }

    /// A number of jobs, where each takes its time.
    pub(crate) fn jobs(self, full: usize) -> usize {
        match self {
            Scale::Full => full,
            Scale::Quarter => full / 2,
        }
    }
}
