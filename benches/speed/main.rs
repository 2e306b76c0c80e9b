//! How fast `admit` is beside the pools people use.
//!
//! `cargo bench --bench speed` prints the tables; `-- burst round-trip` only these, `-- --rounds N` sets how
//! often each cell is measured. Every sample is a process of its own, and within a round the pools take turns
//! in shuffled order, so that they meet the same noise. Ratios carry over to other machines, times do not.

mod burst;
mod done;
mod options;
mod pools;
mod round_trip;
mod sample;
mod table;

use clap::Parser;
use options::{Options, Table};
use sample::Sample;

fn main() {
    let options = Options::parse();
    if let Some(sample) = &options.sample {
        let sample = Sample::parse_from(sample);
        for figure in sample.measure() {
            println!("{figure}");
        }
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{cpus} CPUs, {} rounds: medians (quartiles), and the ratio to the first pool",
        options.rounds
    );
    for table in &options.tables() {
        match table {
            Table::Burst => burst::print(&options, false),
            Table::BurstOneCpu => burst::print(&options, true),
            Table::RoundTrip => round_trip::print(&options),
        }
    }
}
