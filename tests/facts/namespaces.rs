//! cgroup namespaces: paths are told from the namespace's own root, and what is outside has '..'
//! for names.

use crate::tree::{Tree, unread, why};

const CGROUP2: &str = "cgroup2 cgroup2 rw";

#[test]
fn in_a_namespace_the_mount_point_is_the_own_group() {
    let tree = Tree::v2("/");
    tree.v2_group("/sys/fs/cgroup");
    tree.file("/sys/fs/cgroup/memory.max", "77\n");
    tree.file("/sys/fs/cgroup/pids.max", "10\n");
    tree.file("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/memory.max"));
    assert_eq!(tree.cpu().cgroup_threads.limit(), Some(7));
    assert_eq!(tree.cpu().quota, tree.limited(1.5, "/sys/fs/cgroup/cpu.max"));
}

#[test]
fn the_hosts_view_beside_it_changes_nothing() {
    let tree = Tree::v2("/");
    tree.v2_group("/sys/fs/cgroup");
    tree.file("/sys/fs/cgroup/memory.max", "77\n");
    tree.mounts(&[
        (30, 1, "/../../..", "/host/sys/fs/cgroup", CGROUP2),
        (31, 1, "/", "/sys/fs/cgroup", CGROUP2),
        (32, 1, "/..", "/host/parent", CGROUP2),
    ]);
    tree.v2_group("/host/sys/fs/cgroup");
    tree.file("/host/sys/fs/cgroup/memory.max", "11\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/memory.max"));
}

#[test]
fn with_only_the_hosts_view_the_way_to_the_own_group_is_not_known() {
    for root in ["/..", "/../..", "/../x"] {
        let tree = Tree::v2("/");
        tree.mounts(&[(30, 1, root, "/sys/fs/cgroup", CGROUP2)]);
        unread(&tree.memory().cgroup_max, &[root, "outside the cgroup namespace"]);
    }
}

#[test]
fn a_group_outside_the_namespace_is_found_below_a_mount_from_there() {
    let tree = Tree::v2("/x/y");
    tree.file("/proc/self/cgroup", "0::/../x/y\n");
    tree.file("/sys/fs/cgroup/x/memory.max", "77\n");
    tree.mounts(&[(30, 1, "/..", "/sys/fs/cgroup", CGROUP2)]);
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/x/memory.max"));
    tree.mounts(&[(30, 1, "/../x", "/sys/fs/cgroup", CGROUP2)]);
    tree.v2_group("/sys/fs/cgroup/y");
    tree.file("/sys/fs/cgroup/y/memory.max", "66\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(66, "/sys/fs/cgroup/y/memory.max"));
}

#[test]
fn a_group_outside_the_namespace_is_not_looked_for_beside_the_mount_point() {
    // /sys/fs/cgroup/../x is there, and no group.
    for (group, root) in [("/../x", "/"), ("/../../x", "/.."), ("/..", "/"), ("/a/../..", "/a")] {
        let tree = Tree::v2("/");
        tree.file("/proc/self/cgroup", format!("0::{group}\n"));
        tree.mounts(&[(30, 1, root, "/sys/fs/cgroup", CGROUP2)]);
        for beside in ["/sys/fs/x", "/sys/fs", "/sys/x", "/sys", "/x"] {
            tree.v2_group(beside);
        }
        unread(&tree.memory().cgroup_max, &[group, "outside the cgroup namespace"]);
    }
}

#[test]
fn a_mount_from_further_up_does_not_tell_the_names_on_the_way() {
    let tree = Tree::v2("/x");
    tree.file("/proc/self/cgroup", "0::/../x\n");
    tree.mounts(&[(30, 1, "/../..", "/sys/fs/cgroup", CGROUP2)]);
    assert!(why(&tree.memory().cgroup_max).contains("is hidden"));
}

#[test]
fn a_mount_point_that_climbs_is_not_followed() {
    let tree = Tree::v2("/");
    tree.mounts(&[(30, 1, "/", "/sys/../groups", CGROUP2)]);
    tree.v2_group("/groups");
    unread(&tree.memory().cgroup_max, &["/sys/../groups", "no path from the root"]);
}
