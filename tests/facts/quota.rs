//! How much processor time the groups allow.

use admit::Fact;

use crate::tree::{STATUS, Tree, unread};

const OWN: &str = "/sys/fs/cgroup/a/b/cpu.max";
const ABOVE: &str = "/sys/fs/cgroup/a/cpu.max";
const V1_QUOTA: &str = "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us";
const V1_PERIOD: &str = "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us";

#[test]
fn the_quota_is_a_fraction_of_its_period() {
    let tree = Tree::v2("/a/b");
    for (text, processors) in [
        ("250000 100000\n", 2.5),
        ("50000 100000\n", 0.5),
        ("1000 1000000\n", 0.001),
        // The period that holds without one.
        ("250000\n", 2.5),
    ] {
        tree.file(OWN, text);
        assert_eq!(tree.cpu().quota, tree.limited(processors, OWN), "{text}");
    }
    for text in ["max 100000\n", "max\n"] {
        tree.file(OWN, text);
        assert_eq!(tree.cpu().quota, Fact::Unlimited, "{text}");
    }
}

#[test]
fn the_least_fraction_holds_and_not_the_least_number() {
    let tree = Tree::v2("/a/b");
    tree.file(OWN, "150000 50000\n");
    tree.file(ABOVE, "200000 100000\n");
    assert_eq!(tree.cpu().quota, tree.limited(2.0, ABOVE));
    tree.file(OWN, "150000 100000\n");
    assert_eq!(tree.cpu().quota, tree.limited(1.5, OWN));
}

#[test]
fn in_version_1_quota_and_period_have_a_file_each() {
    let tree = Tree::v1("/a/b");
    assert_eq!(tree.cpu().quota, Fact::Unlimited);
    tree.file(V1_QUOTA, "250000\n");
    assert_eq!(tree.cpu().quota, tree.limited(2.5, V1_QUOTA));
    let above = "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us";
    tree.file(above, "50000\n");
    assert_eq!(tree.cpu().quota, tree.limited(0.5, above));
    tree.remove(V1_PERIOD);
    unread(&tree.cpu().quota, &[V1_PERIOD]);
}

#[test]
fn a_quota_that_makes_no_sense_is_unread() {
    for text in ["", "0 100000\n", "5 0\n", "max 0\n", "-1 100000\n", "1 2 3\n", "a b\n", "1 max\n"]
    {
        let tree = Tree::v2("/a/b");
        tree.file(OWN, text);
        unread(&tree.cpu().quota, &[OWN]);
    }
    for (file, text) in [
        (V1_QUOTA, "0\n"),
        (V1_QUOTA, "-2\n"),
        (V1_QUOTA, "max\n"),
        (V1_QUOTA, ""),
        (V1_PERIOD, "0\n"),
        (V1_PERIOD, "-1\n"),
        (V1_PERIOD, ""),
    ] {
        let tree = Tree::v1("/a/b");
        tree.file(V1_QUOTA, "250000\n");
        tree.file(file, text);
        unread(&tree.cpu().quota, &[file]);
    }
}

#[test]
fn shares_and_weights_limit_nothing() {
    let tree = Tree::v2("/a/b");
    tree.file("/sys/fs/cgroup/a/b/cpu.weight", "1\n");
    assert_eq!(tree.cpu().quota, Fact::Unlimited);
    let tree = Tree::v1("/a/b");
    tree.file("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.shares", "2\n");
    assert_eq!(tree.cpu().quota, Fact::Unlimited);
}

#[test]
fn the_processors_that_are_allowed_are_counted() {
    let tree = Tree::new();
    assert_eq!(tree.cpu().allowed, Some(4));
    for (list, allowed) in [("0", Some(1)), ("1,3-5,64-127", Some(68)), ("", None), ("3-1", None)] {
        tree.file("/proc/self/status", STATUS.replace("0-3", list));
        assert_eq!(tree.cpu().allowed, allowed, "{list}");
    }
    tree.file("/proc/self/status", "Name:\tx\n");
    assert_eq!(tree.cpu().allowed, None);
}
