//! Control groups of version 1.

use admit::{Fact, GIB, MIB};

use crate::tree::{Tree, unread};

const LIMIT: &str = "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes";
const STAT: &str = "/sys/fs/cgroup/memory/a/b/memory.stat";

#[test]
fn the_limit_of_the_own_group_is_found() {
    let tree = Tree::v1("/a/b");
    tree.file(LIMIT, "536870912\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(512 * MIB, LIMIT));
    assert_eq!(tree.memory().cgroup_high, Fact::Unlimited);
}

#[test]
fn the_least_limit_of_all_levels_holds_wherever_it_is() {
    for tightest in ["/a/b", "/a", ""] {
        let tree = Tree::v1("/a/b");
        for group in ["/a/b", "/a", ""] {
            let limit = if group == tightest { 64 } else { 100 + group.len() };
            let file = format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes");
            tree.file(file, format!("{limit}\n"));
        }
        let at = format!("/sys/fs/cgroup/memory{tightest}/memory.limit_in_bytes");
        assert_eq!(tree.memory().cgroup_max, tree.limited(64, &at));
    }
}

#[test]
fn no_limit_is_told_by_its_size_for_every_size_of_pages() {
    for page in [4096, 16_384, 65_536] {
        let tree = Tree::v1("/a/b");
        let none = i64::MAX / page * page;
        tree.file(LIMIT, format!("{none}\n"));
        tree.file(STAT, format!("hierarchical_memory_limit {none}\n"));
        assert_eq!(tree.memory().cgroup_max, Fact::Unlimited, "pages of {page}");
    }
    let tree = Tree::v1("/a/b");
    for none in [i64::MAX as u64, u64::MAX] {
        tree.file(LIMIT, format!("{none}\n"));
        assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
    }
    let most = i64::MAX as u64 / 65_536 * 65_536 - 4096;
    tree.file(LIMIT, format!("{most}\n"));
    assert_eq!(tree.memory().cgroup_max, tree.limited(most, LIMIT));
    tree.file(LIMIT, "0\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(0, LIMIT));
}

#[test]
fn a_limit_above_all_that_can_be_seen_is_in_the_own_groups_stat() {
    let tree = Tree::v1("/a/b");
    tree.file(LIMIT, format!("{}\n", 4 * GIB));
    // By name, not by place.
    tree.file(
        STAT,
        "total_hierarchical_memory_limit 1\nhierarchical_memsw_limit 2\nrss 3\n\
        hierarchical_memory_limit 1073741824\n",
    );
    let at = format!("{STAT}, hierarchical_memory_limit");
    assert_eq!(tree.memory().cgroup_max, tree.limited(GIB, &at));
}

#[test]
fn of_equal_limits_the_highest_that_can_be_seen_is_named() {
    let tree = Tree::v1("/a/b");
    let above = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
    tree.file(above, "77\n");
    tree.file(STAT, "hierarchical_memory_limit 77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, above));
    tree.file(LIMIT, "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, above));
    tree.file(above, "88\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, LIMIT));
}

#[test]
fn the_stat_of_groups_above_is_not_needed() {
    let tree = Tree::v1("/a/b");
    tree.remove("/sys/fs/cgroup/memory/a/memory.stat");
    tree.file("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 1\n");
    assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
}

#[test]
fn a_stat_without_the_limit_of_all_groups_is_unread() {
    for text in ["", "rss 1\n", "hierarchical_memory_limit\n", "hierarchical_memory_limit x\n"] {
        let tree = Tree::v1("/a/b");
        tree.file(LIMIT, "77\n");
        tree.file(STAT, text);
        unread(&tree.memory().cgroup_max, &[STAT]);
    }
    let tree = Tree::v1("/a/b");
    tree.remove(STAT);
    unread(&tree.memory().cgroup_max, &[STAT]);
}

#[test]
fn at_the_mount_point_a_file_may_not_be_missing_beside_another() {
    let [memory, cpu, pids] =
        ["memory", "cpu,cpuacct", "pids"].map(|name| format!("/sys/fs/cgroup/{name}"));
    let tree = Tree::v1("/");
    tree.file(format!("{cpu}/cpu.cfs_quota_us"), "1000\n");
    tree.file(format!("{pids}/pids.max"), "10\n");
    tree.file(format!("{pids}/pids.current"), "1\n");
    for file in [
        format!("{memory}/memory.stat"),
        format!("{cpu}/cpu.cfs_period_us"),
        format!("{pids}/pids.current"),
    ] {
        tree.remove(file);
    }
    unread(&tree.memory().cgroup_max, &[&memory, "without memory.stat"]);
    unread(&tree.cpu().quota, &[&cpu, "without cpu.cfs_period_us"]);
    unread(&tree.cpu().cgroup_threads, &[&pids, "without pids.current"]);
}

#[test]
fn soft_limits_are_none() {
    let tree = Tree::v1("/a/b");
    tree.file("/sys/fs/cgroup/memory/a/b/memory.soft_limit_in_bytes", "1\n");
    assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
    assert_eq!(tree.memory().cgroup_high, Fact::Unlimited);
}

#[test]
fn a_level_without_its_file_is_unread_except_the_mount_point() {
    let tree = Tree::v1("/a/b");
    tree.remove("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
    let above = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
    tree.remove(above);
    unread(&tree.memory().cgroup_max, &[above]);
    // Not the excuse of version 2.
    tree.file("/sys/fs/cgroup/memory/a/cgroup.controllers", "\n");
    unread(&tree.memory().cgroup_max, &[above]);
}

#[test]
fn a_mount_point_that_is_no_group_does_not_pass_for_the_root_of_all() {
    // Nothing of a group, or a group of the other version.
    for files in [&["x"][..], &["cgroup.procs", "cgroup.controllers"]] {
        let tree = Tree::v1("/");
        assert_eq!(tree.cpu().cgroup_threads, Fact::Unlimited);
        tree.remove("/sys/fs/cgroup/pids");
        for file in files {
            tree.file(format!("/sys/fs/cgroup/pids/{file}"), "");
        }
        unread(&tree.cpu().cgroup_threads, &["/sys/fs/cgroup/pids/pids.max"]);
    }
}

#[test]
fn a_limit_that_makes_no_sense_is_unread() {
    for text in ["", "-1\n", "max\n", "5k\n", "1 2\n", "99999999999999999999\n"] {
        let tree = Tree::v1("/a/b");
        tree.file(LIMIT, text);
        unread(&tree.memory().cgroup_max, &[LIMIT]);
    }
}

#[test]
fn a_controller_whose_hierarchy_is_not_mounted_is_unread() {
    let tree = Tree::v1("/a/b");
    tree.mounts(&[
        // A name that has the controller's in it, an option of another kind of file system, and
        // the other version.
        (32, 1, "/", "/sys/fs/cgroup/memory", "cgroup cgroup rw,memory2,xmemory,name=memory"),
        (33, 1, "/", "/sys/fs/cgroup/memory", "tmpfs cgroup rw,memory"),
        (34, 1, "/", "/sys/fs/cgroup/memory", "cgroup2 cgroup rw,memory"),
    ]);
    unread(&tree.memory().cgroup_max, &["memory", "not mounted"]);
}
