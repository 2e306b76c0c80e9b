//! The command line and the environment.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, value_parser};
use parse_size::parse_size;

/// Hashes passwords, compresses, and makes thumbnails, behind one memory budget.
///
/// BYTES may have a suffix, as in 512MiB; times are in seconds.
#[derive(Debug, Parser)]
#[command(name = "server")]
pub(crate) struct Options {
    /// Where to listen; port 0 is any that is free, and is printed
    #[arg(long, env = "SERVER_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// Where else to answer what tells how the server is, with connections of its own: those above
    /// may be taken by others just when it matters
    #[arg(long, env = "SERVER_WATCH", value_name = "ADDR")]
    pub(crate) watch: Option<SocketAddr>,

    /// Memory for everything [default: what the process's limits say]
    #[arg(long, env = "SERVER_MEMORY", value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Part of the memory that no job is given, for the program itself, connections, the allocator
    /// [default: an eighth, and at least 72MiB]
    #[arg(long, env = "SERVER_RESERVE", value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) reserve: Option<u64>,

    /// Part of the memory for bodies of requests that wait: 2MiB for small ones, and half of the
    /// rest each for what is compressed and for pictures
    #[arg(
        long,
        env = "SERVER_WAITING",
        value_name = "BYTES",
        default_value = "98MiB",
        value_parser = parse_bytes
    )]
    pub(crate) waiting: u64,

    /// Threads that run jobs, at least 2 [default: one for each processor, and one for light jobs]
    #[arg(
        long,
        env = "SERVER_WORKERS",
        value_name = "N",
        value_parser = value_parser!(u16).range(2..=1024)
    )]
    pub(crate) workers: Option<u16>,

    /// Threads that handle connections
    #[arg(
        long,
        env = "SERVER_ASYNC_WORKERS",
        value_name = "N",
        default_value_t = 2,
        value_parser = value_parser!(u16).range(1..=1024)
    )]
    pub(crate) async_workers: u16,

    /// Connections that are open at once; further ones wait. Each takes up to 320 KiB, nearly all in
    /// the kernel
    #[arg(
        long,
        env = "SERVER_CONNECTIONS",
        value_name = "N",
        default_value_t = 256,
        value_parser = value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) connections: u32,

    /// How long a request may take to arrive, and its client to take each 64 KiB of the answer
    #[arg(
        long,
        env = "SERVER_RECEIVE_WITHIN",
        value_name = "SECONDS",
        default_value = "20",
        value_parser = parse_seconds
    )]
    pub(crate) receive_within: Duration,

    /// How long after a request has arrived its job may start; later it is of no use
    #[arg(
        long,
        env = "SERVER_START_WITHIN",
        value_name = "SECONDS",
        default_value = "6",
        value_parser = parse_seconds
    )]
    pub(crate) start_within: Duration,

    /// How long accepted requests may take when the server is asked to stop
    #[arg(
        long,
        env = "SERVER_DRAIN_WITHIN",
        value_name = "SECONDS",
        default_value = "20",
        value_parser = parse_seconds
    )]
    pub(crate) drain_within: Duration,
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|why| format!("{why}; a size is written like 512MiB"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|why| why.to_string())?;
    if (0.001..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(String::from("a time is 0.001 to 86400 seconds"))
    }
}
