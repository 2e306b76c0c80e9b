//! A web service whose heavy requests go through `admit`: hashing passwords, compressing, and making
//! thumbnails, in as much memory as there is.
//!
//! `cargo run --release --all-features --example server`, then <http://127.0.0.1:8080/>;
//! `-- --help` lists the options. `lanes.rs` has the policy, `routes.rs` the requests:
//!
//! | request | answer |
//! |---|---|
//! | `POST /hash`, `{"password": "..", "salt": "..", "log_n": 14}`, log_n 10 to 17 | scrypt's hash, 64 hexadecimal digits |
//! | `POST /gzip`, up to 32 MiB | the same, compressed |
//! | `POST /thumbnail`, a PNG or JPEG of up to 32 MiB | a PNG that fits into 256 x 256 |
//! | `GET /healthz`, `GET /metrics`, `GET /` | whether it works, Prometheus, plots that move |
//!
//! What there is no room for is refused, with 503 and `Retry-After`, before its body is read; what never
//! fits with 413. SIGTERM stops it when all that was accepted is answered.
//!
//! The exit status is 0 if all was answered, 1 if not in time, and 2 if an option is bad or the
//! service cannot begin.

mod body;
mod failure;
mod health;
mod history;
mod lanes;
mod linger;
mod metrics;
mod options;
mod plots;
mod routes;
mod runtime;
mod serve;
mod stop;
mod watching;
mod work;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use admit::Executor;
use clap::Parser;

use crate::history::History;
use crate::lanes::Lanes;
use crate::options::Options;
use crate::serve::Connections;
use crate::stop::Stop;

/// Connections of those who watch the server on an address of their own.
const MOST_WATCHERS: u32 = 16;
const LATE: u8 = 1;
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(LATE),
        Err(why) => {
            drop(writeln!(io::stderr(), "error: {why}"));
            ExitCode::from(FAILURE)
        }
    }
}

/// Serves until it is told to stop, and says whether everything was answered.
fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let executor = Arc::new(lanes::executor(options)?);
    runtime::runtime(options.async_workers)?.block_on(serve(&executor, options))
}

async fn serve(executor: &Arc<Executor>, options: &Options) -> Result<bool, Box<dyn Error>> {
    let lanes = Lanes::of(executor)?;
    let history = History::default();
    let watching = watching::routes(executor, &lanes, &history);
    let service = routes::routes(&lanes, options).merge(watching.clone());
    let connections = Connections::new(service, options.connections, options.receive_within);
    let listener = serve::listen(options.listen)?;
    let watchers = options.watch.map(serve::listen).transpose()?;
    let stop = Stop::listen()?;
    tokio::spawn(history.keep(Arc::clone(executor)));

    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", executor.plan())?;
    if let Some(watchers) = &watchers {
        writeln!(stdout, "watch it on http://{}", watchers.local_addr()?)?;
    }
    writeln!(stdout, "listening on http://{}", listener.local_addr()?)?;
    drop(stdout);

    if let Some(watchers) = watchers {
        let watched = Connections::new(watching, MOST_WATCHERS, options.receive_within);
        tokio::spawn(async move { watched.accept(&watchers).await });
    }
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = stop.told() => {}
    }
    let until = Instant::now() + options.drain_within;
    let answered = tokio::time::timeout_at(until.into(), connections.end(listener)).await;
    // Each job belongs to a connection: those that are left now have nobody to answer to.
    executor.abort_waiting();
    let ended = executor.drain_timeout(until.saturating_duration_since(Instant::now()));
    match answered {
        Ok(answered) => answered?,
        Err(_) => return Ok(false),
    }
    Ok(ended.is_ok())
}
