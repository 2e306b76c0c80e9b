//! A web service under about ten times the load that it can carry, in a memory group of 384 MiB.
//!
//! `cargo bench --profile release --all-features --bench overload` builds the example `server`, runs it, and the same
//! service as it is written without admission, and prints one table. `-- --help` lists the options.
//! It needs Linux, root, and memory control groups.
//!
//! Clients come at random times (`load.rs`), each with a connection of its own, and do not wait for ever.
//! Work counts as useful if its answer came in time, at what it costs without load. With `--require`, a promise
//! of the service behind `admit` (`expected.rs`) that is not kept is a failure.

#[cfg(target_os = "linux")]
mod bodies;
#[cfg(target_os = "linux")]
#[path = "../../tests/server/browser.rs"]
mod browser;
#[cfg(target_os = "linux")]
mod capacity;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod cpu_time;
#[cfg(target_os = "linux")]
mod expected;
#[cfg(target_os = "linux")]
#[allow(dead_code)] // It serves the trials of tests/oom, which need more of it.
#[path = "../../tests/oom/run/group.rs"]
mod group;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod naive;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod result;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod scrape;
#[cfg(target_os = "linux")]
mod served;
#[cfg(target_os = "linux")]
mod trial;
#[cfg(target_os = "linux")]
#[allow(dead_code)] // It is the server's, which needs more of it.
#[path = "../../examples/server/work/mod.rs"]
mod work;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    run::run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the trial needs control groups, which Linux has");
}
