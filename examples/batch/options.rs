//! The command line.

use std::path::PathBuf;
use std::thread;

use clap::{Parser, value_parser};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parse_size::parse_size;

use crate::hash::Hash;

/// Hashes with scrypt and compresses with gzip, behind one memory budget.
///
/// BYTES may have a suffix: 512MiB is 512 * 1024 * 1024, and 512MB is 512 * 1000 * 1000.
#[derive(Debug, Parser)]
#[command(name = "batch")]
pub(crate) struct Options {
    /// Threads that run jobs [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Memory for everything
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = parse_bytes)]
    pub(crate) memory: u64,

    /// Part of the memory that no job is given
    #[arg(long, value_name = "BYTES", default_value = "128MiB", value_parser = parse_bytes)]
    pub(crate) reserve: u64,

    /// Part of the memory for the files of jobs that wait
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    pub(crate) waiting: u64,

    /// Jobs that may wait
    #[arg(long, value_name = "JOBS", default_value_t = 64)]
    pub(crate) queue: usize,

    /// Hashes to compute
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) hashes: usize,

    /// Memory of one hash, a power of two; several take turns
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "16MiB,32MiB,64MiB",
        value_parser = parse_hash
    )]
    pub(crate) sizes: Vec<Hash>,

    /// File or directory to compress; may be given more than once [default: this crate's files]
    #[arg(long = "input", value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Print one JSON object instead of the table, and no progress
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    pub(crate) fn workers(&self) -> usize {
        match self.workers {
            Some(count) => count.into(),
            None => thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// A bar that draws itself only for somebody who looks at it.
    pub(crate) fn progress_bar(&self) -> ProgressBar {
        if self.json {
            return ProgressBar::hidden();
        }
        // How many jobs there will be is not known before all files are found.
        let style = ProgressStyle::with_template("{bar:40} {pos} of {len} submitted jobs done")
            .expect("the template is well-formed");
        ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()).with_style(style)
    }
}

fn parse_bytes(text: &str) -> Result<u64, parse_size::Error> {
    parse_size(text)
}

fn parse_hash(text: &str) -> Result<Hash, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    Hash::of_size(bytes)
        .ok_or_else(|| format!("{bytes} bytes is not a power of two from 2 KiB upwards"))
}
