//! How many more threads the groups allow.

use admit::Fact;

use crate::tree::{Tree, unread};

fn tree(own: (&str, &str), above: (&str, &str)) -> Tree {
    let tree = Tree::v2("/a/b");
    for (group, (max, current)) in [("a/b", own), ("a", above)] {
        tree.file(format!("/sys/fs/cgroup/{group}/pids.max"), format!("{max}\n"));
        tree.file(format!("/sys/fs/cgroup/{group}/pids.current"), format!("{current}\n"));
    }
    tree
}

fn left(limit: u64, tree: &Tree, group: &str, current: u64) -> Fact<u64> {
    let file = tree.path(format!("/sys/fs/cgroup/{group}/pids.max"));
    Fact::Limited { limit, at: format!("{}, less {current} in pids.current", file.display()) }
}

#[test]
fn what_runs_already_is_taken_from_the_limit() {
    let tree = tree(("100", "40"), ("max", "500"));
    assert_eq!(tree.cpu().cgroup_threads, left(60, &tree, "a/b", 40));
}

#[test]
fn the_level_with_the_least_left_decides() {
    // Neither the least limit nor the most tasks.
    let first = tree(("100", "40"), ("1000", "990"));
    assert_eq!(first.cpu().cgroup_threads, left(10, &first, "a", 990));
    let second = tree(("max", "40"), ("1000", "990"));
    assert_eq!(second.cpu().cgroup_threads, left(10, &second, "a", 990));
    let third = tree(("50", "45"), ("60", "46"));
    assert_eq!(third.cpu().cgroup_threads, left(5, &third, "a/b", 45));
}

#[test]
fn more_tasks_than_allowed_leave_none() {
    let tree = tree(("10", "40"), ("max", "500"));
    assert_eq!(tree.cpu().cgroup_threads, left(0, &tree, "a/b", 40));
}

#[test]
fn no_limit_needs_no_count() {
    let tree = tree(("max", "garbage"), ("max", ""));
    assert_eq!(tree.cpu().cgroup_threads, Fact::Unlimited);
}

#[test]
fn version_1_has_the_same_files() {
    let tree = Tree::v1("/a/b");
    assert_eq!(tree.cpu().cgroup_threads, Fact::Unlimited);
    tree.file("/sys/fs/cgroup/pids/a/pids.max", "10\n");
    assert_eq!(tree.cpu().cgroup_threads.limit(), Some(7));
}

#[test]
fn a_limit_or_a_count_that_makes_no_sense_is_unread() {
    for (max, current) in [("", "1"), ("-1", "1"), ("ten", "1"), ("10", ""), ("10", "max")] {
        let tree = tree((max, current), ("max", "1"));
        unread(&tree.cpu().cgroup_threads, &["/sys/fs/cgroup/a/b/pids."]);
    }
    let tree = tree(("10", "1"), ("10", "1"));
    tree.remove("/sys/fs/cgroup/a/pids.current");
    unread(&tree.cpu().cgroup_threads, &["/sys/fs/cgroup/a/pids.current"]);
}
