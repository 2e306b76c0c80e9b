//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// A web service under about ten times the load that it can carry, in a memory group.
#[derive(Debug, Parser)]
#[command(name = "overload")]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) service: Option<Serve>,

    /// How long the overload lasts, in seconds
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,

    /// Honest requests per second
    #[arg(long, default_value_t = 110.0)]
    pub(crate) rate: f64,

    /// The memory of the group, in MiB
    #[arg(long, default_value_t = 384)]
    pub(crate) limit_mib: u64,

    /// How often each service is run
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: u64,

    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Only these
    #[arg(long, value_delimiter = ',', default_value = "admit,semaphore,spawn-blocking")]
    pub(crate) services: Vec<Service>,

    /// Have Chromium make a picture (PNG) of the page of the service behind `admit`, under load
    #[arg(long, value_name = "FILE")]
    pub(crate) screenshot: Option<PathBuf>,

    /// Fail if the service behind `admit` breaks a promise that is about counts, or none can be run
    #[arg(long)]
    pub(crate) require: bool,

    /// Fail also if it breaks one that is about times, and so about the machine
    #[arg(long)]
    pub(crate) require_times: bool,

    /// Given by cargo, and of no meaning here
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Service {
    /// The example `server`.
    Admit,
    /// A semaphore of bytes in front of `spawn_blocking`, when the body has been read.
    Semaphore,
    /// `spawn_blocking` alone.
    SpawnBlocking,
}

/// The process under trial; not to be called by hand.
#[derive(Clone, Copy, Debug, Subcommand)]
#[command(hide = true)]
pub(crate) enum Serve {
    Naive {
        #[arg(long)]
        admissible_mib: Option<u32>,
    },
}
