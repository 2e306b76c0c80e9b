//! How many more threads the user may start.

use std::fs;

use admit::Fact;

use crate::tree::{STATUS, Tree, limits, unread};

/// A process with a limit of 100, of a user with 5 + 7 threads.
fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("/proc/self/limits", limits("unlimited", "unlimited", "100"));
    process(&tree, 10, [1000, 1000], 5);
    process(&tree, 11, [0, 1000], 1000);
    // It has changed its effective user, and still counts for the real one.
    process(&tree, 12, [1000, 0], 7);
    tree.file("/proc/13x/status", "garbage");
    tree.file("/proc/sys/kernel/pid_max", "32768\n");
    tree
}

fn process(tree: &Tree, id: u32, [real, effective]: [u32; 2], threads: u32) {
    let text = format!("Name:\tx\nUid:\t{real}\t{effective}\t0\t0\nThreads:\t{threads}\n");
    tree.file(format!("/proc/{id}/status"), text);
}

fn is(tree: &Tree, user: u32, capabilities: u64) {
    let text = STATUS.replace("Uid:\t1000", &format!("Uid:\t{user}"));
    let text = text.replace("CapEff:\t0000000000000000", &format!("CapEff:\t{capabilities:016x}"));
    tree.file("/proc/self/status", text);
}

fn left(limit: u64, threads: u64, user: u64) -> Fact<u64> {
    let at = format!("RLIMIT_NPROC, less {threads} threads of user {user}");
    Fact::Limited { limit, at }
}

#[test]
fn threads_of_the_real_user_in_all_processes_are_taken_from_the_limit() {
    assert_eq!(tree().cpu().user_threads, left(88, 12, 1000));
}

#[test]
fn no_limit_needs_no_count() {
    let tree = tree();
    tree.file("/proc/self/limits", limits("unlimited", "unlimited", "unlimited"));
    tree.file("/proc/10/status", "garbage");
    assert_eq!(tree.cpu().user_threads, Fact::Unlimited);
}

#[test]
fn more_threads_than_allowed_leave_none() {
    let tree = tree();
    process(&tree, 20, [1000, 1000], u32::MAX);
    assert_eq!(tree.cpu().user_threads.limit(), Some(0));
    let text = format!("Uid:\t1000\t1\t1\t1\nThreads:\t{}\n", u64::MAX);
    tree.file("/proc/21/status", text);
    assert_eq!(tree.cpu().user_threads, left(0, u64::MAX, 1000));
}

#[test]
fn root_and_two_capabilities_are_exempt() {
    let tree = tree();
    for (user, capabilities) in [(0, 0), (1000, 1 << 21), (1000, 1 << 24), (1000, u64::MAX)] {
        is(&tree, user, capabilities);
        assert_eq!(tree.cpu().user_threads, Fact::Unlimited, "user {user}, {capabilities:x}");
    }
    is(&tree, 1000, !(1 << 21 | 1 << 24));
    assert_eq!(tree.cpu().user_threads, left(88, 12, 1000));
}

#[test]
fn in_a_user_namespace_nobody_is_exempt() {
    let tree = tree();
    tree.user_namespace(4_026_532_192);
    is(&tree, 0, u64::MAX);
    assert_eq!(tree.cpu().user_threads, left(0, 1000, 0));
    is(&tree, 1000, 1 << 24);
    assert_eq!(tree.cpu().user_threads, left(88, 12, 1000));
}

#[test]
fn a_kernel_without_user_namespaces_is_in_the_initial_one() {
    let tree = tree();
    fs::remove_file(tree.path("/proc/self/ns/user")).unwrap();
    is(&tree, 0, 0);
    assert_eq!(tree.cpu().user_threads, Fact::Unlimited);
    tree.file("/proc/self/ns/user", "no link");
    unread(&tree.cpu().user_threads, &["/proc/self/ns/user"]);
}

#[test]
fn processes_that_end_while_they_are_counted_are_no_error() {
    let tree = tree();
    tree.file("/proc/30/other", "");
    assert_eq!(tree.cpu().user_threads, left(88, 12, 1000));
}

#[test]
fn a_process_that_cannot_be_read_makes_the_count_unread() {
    let tree = tree();
    tree.unreadable("/proc/30/status");
    unread(&tree.cpu().user_threads, &["/proc/30/status"]);
    for text in ["", "Uid:\n", "Uid:\tx\n", "Uid:\t1000\t1000\n", "Uid:\t1000\nThreads:\t-1\n"] {
        let tree = self::tree();
        tree.file("/proc/30/status", text);
        unread(&tree.cpu().user_threads, &["/proc/30/status"]);
    }
}

#[test]
fn a_process_that_does_not_know_who_it_is_is_unread() {
    let tree = tree();
    for text in ["", "Uid:\t1000\n", "Uid:\t1000\nCapEff:\tx\n", "Uid:\t1000\nCapEff:\t\n"] {
        tree.file("/proc/self/status", text);
        unread(&tree.cpu().user_threads, &["/proc/self/status"]);
    }
}
