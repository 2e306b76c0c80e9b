//! Real out-of-memory trials: the kernel is the judge.
//!
//! Every trial is a child process in a memory control group of its own. Whether it survived is
//! read from the kernel's counters, and each has a control that has to die, so that a survival
//! means something.
//!
//! `cargo test --test oom` runs each once, where control groups can be made.
//! `-- --runs 5 --emulated --require` is what CI does: with `--require`, whatever cannot be run is a
//! failure. `-- --help` has the rest.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod run;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    run::run()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {
    println!("skipped: the trials need control groups, which Linux has, and glibc");
}
