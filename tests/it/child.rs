//! Tests that need a process of their own: the test binary runs one test of itself again.
#![allow(unsafe_code)]

use std::process::Command;
use std::thread;

const IS_CHILD: &str = "ADMIT_TEST_IS_CHILD";

pub(crate) fn is_child() -> bool {
    std::env::var_os(IS_CHILD).is_some()
}

/// Whether the process that started this one was a child itself.
pub(crate) fn is_grandchild() -> bool {
    std::env::var_os(IS_CHILD).is_some_and(|generation| generation == "2")
}

/// Runs the named test in a new process, and fails if it does.
pub(crate) fn run(test: &str) {
    run_with(test, &[]);
}

/// The same with variables added to its environment.
pub(crate) fn run_with(test: &str, variables: &[(&str, &str)]) {
    let binary = std::env::current_exe().unwrap();
    check(test, Command::new(binary).envs(variables.iter().copied()).env(IS_CHILD, "1"));
}

/// The same from a child.
pub(crate) fn run_again(test: &str) {
    check(test, Command::new(std::env::current_exe().unwrap()).env(IS_CHILD, "2"));
}

/// The same with a shell in between, so that the new process's parent is another program.
#[cfg(unix)]
pub(crate) fn run_from_shell(test: &str, variables: &[(&str, &str)]) {
    let mut shell = Command::new("sh");
    // With something left to do, no shell replaces itself by the program.
    shell.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(std::env::current_exe().unwrap());
    check(test, shell.envs(variables.iter().copied()).env(IS_CHILD, "1"));
}

fn check(test: &str, command: &mut Command) {
    let output =
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{told}\n{complained}", output.status);
    assert!(told.contains("1 passed"), "no test has this name: {test}\n{told}");
}

/// No more address space than this for the rest of the process's life.
#[cfg(target_os = "linux")]
pub(crate) fn limit_address_space(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the pointer is to a valid value, and is only read.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(set, 0);
}

/// Forks, runs the function in the child, and gives the code it ended with. The child has one
/// thread, so the function must not wait for any other.
pub(crate) fn fork(in_child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: what runs in the child allocates, which glibc and musl allow after a fork of a
    // process with threads, and ends in `_exit`, which runs nothing of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(in_child));
        // SAFETY: always sound to call.
        unsafe { libc::_exit(code.unwrap_or(99)) }
    }
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a valid value.
        let ended = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
        if ended == pid {
            assert!(libc::WIFEXITED(status), "status {status:x}");
            return libc::WEXITSTATUS(status);
        }
        assert_eq!(ended, 0);
        thread::yield_now();
    }
}
