//! What is measured, and how often.

use clap::{Parser, ValueEnum};

#[derive(Parser)]
pub(crate) struct Options {
    /// The tables to print: all, unless some are named.
    tables: Vec<Table>,
    /// How often each cell is measured.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Given by cargo, and of no meaning here.
    #[arg(long, hide = true)]
    bench: bool,
    /// Takes one sample in this process.
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    pub(crate) sample: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Table {
    /// Empty jobs, many at once.
    Burst,
    /// The same on one processor.
    BurstOneCpu,
    /// One job at a time, whose value is waited for.
    RoundTrip,
}

impl Options {
    pub(crate) fn tables(&self) -> Vec<Table> {
        let all = Table::value_variants();
        if self.tables.is_empty() { all.to_vec() } else { self.tables.clone() }
    }
}
