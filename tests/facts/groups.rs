//! Control groups of version 2, and which version a controller is in.

use admit::{Fact, MIB};

use crate::tree::{Tree, V2, unread};

#[test]
fn the_limit_of_the_own_group_is_found() {
    let tree = Tree::v2("/a");
    tree.file("/sys/fs/cgroup/a/memory.max", "536870912\n");
    let memory = tree.memory();
    assert_eq!(memory.cgroup_max, tree.limited(512 * MIB, "/sys/fs/cgroup/a/memory.max"));
    assert_eq!(memory.cgroup_high, Fact::Unlimited);
}

#[test]
fn the_least_limit_of_all_levels_holds_wherever_it_is() {
    let groups = ["/a", "/a/b", "/a/b/c", "/a/b/c/d"];
    for tightest in groups {
        let tree = Tree::v2("/a/b/c/d");
        for group in groups {
            let limit = if group == tightest { 64 } else { 100 + group.len() };
            tree.file(format!("{V2}{group}/memory.max"), format!("{limit}\n"));
            tree.file(format!("{V2}{group}/memory.high"), format!("{}\n", limit + 1));
        }
        let memory = tree.memory();
        assert_eq!(memory.cgroup_max, tree.limited(64, &format!("{V2}{tightest}/memory.max")));
        assert_eq!(memory.cgroup_high, tree.limited(65, &format!("{V2}{tightest}/memory.high")));
    }
}

#[test]
fn max_is_no_limit_and_zero_is_one() {
    let tree = Tree::v2("/a");
    assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
    tree.file("/sys/fs/cgroup/a/memory.max", "0\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(0, "/sys/fs/cgroup/a/memory.max"));
}

#[test]
fn high_below_max_is_the_least_of_all() {
    let tree = Tree::v2("/a");
    tree.file("/sys/fs/cgroup/a/memory.max", "536870912\n");
    tree.file("/sys/fs/cgroup/a/memory.high", "268435456\n");
    let memory = tree.memory();
    assert_eq!(memory.cgroup_high.limit(), Some(256 * MIB));
    assert_eq!(memory.least(), tree.limited(256 * MIB, "/sys/fs/cgroup/a/memory.high"));
}

#[test]
fn the_root_of_all_groups_has_no_files_and_limits_nothing() {
    let tree = Tree::v2("/");
    let memory = tree.memory();
    assert_eq!((memory.cgroup_max, memory.cgroup_high), (Fact::Unlimited, Fact::Unlimited));
    let cpu = tree.cpu();
    assert_eq!((cpu.quota, cpu.cgroup_threads), (Fact::Unlimited, Fact::Unlimited));
}

#[test]
fn a_mount_point_that_is_no_group_does_not_pass_for_the_root_of_all() {
    let tree = Tree::v2("/");
    tree.remove("/sys/fs/cgroup/cgroup.controllers");
    unread(&tree.memory().cgroup_max, &["/sys/fs/cgroup/memory.max"]);
    unread(&tree.cpu().quota, &["/sys/fs/cgroup/cpu.max"]);
    unread(&tree.cpu().cgroup_threads, &["/sys/fs/cgroup/pids.max"]);
}

#[test]
fn the_mount_point_of_a_container_has_limits_too() {
    let tree = Tree::v2("/");
    tree.file("/sys/fs/cgroup/memory.max", "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/memory.max"));
}

#[test]
fn a_level_without_the_controller_has_no_limit_of_its_own() {
    let tree = Tree::v2("/a/b");
    tree.remove("/sys/fs/cgroup/a/b");
    tree.file("/sys/fs/cgroup/a/b/cgroup.controllers", "memory_x xmemory pids\n");
    tree.file("/sys/fs/cgroup/a/memory.max", "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/a/memory.max"));
    tree.file("/sys/fs/cgroup/a/b/cgroup.controllers", "\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/a/memory.max"));
}

#[test]
fn a_level_with_the_controller_and_without_its_file_is_unread() {
    for (level, file) in [("a", "memory.max"), ("a/b", "memory.max"), ("a", "memory.high")] {
        let tree = Tree::v2("/a/b");
        tree.file("/sys/fs/cgroup/a/b/memory.max", "77\n");
        let file = format!("/sys/fs/cgroup/{level}/{file}");
        tree.remove(&file);
        unread(&tree.memory().least(), &[&file]);
    }
}

#[test]
fn a_missing_level_is_unread() {
    let tree = Tree::v2("/a/b");
    tree.remove("/sys/fs/cgroup/a/b");
    unread(&tree.memory().cgroup_max, &["/sys/fs/cgroup/a/b/memory.max"]);
}

#[test]
fn controllers_that_make_no_sense_enable_and_disable_nothing() {
    let tree = Tree::v2("/a");
    tree.remove("/sys/fs/cgroup/a/memory.max");
    tree.file("/sys/fs/cgroup/a/cgroup.controllers", "cpu \u{fe}\n");
    unread(&tree.memory().cgroup_max, &["cgroup.controllers"]);
    tree.unreadable("/sys/fs/cgroup/a/cgroup.controllers");
    unread(&tree.memory().cgroup_max, &["/sys/fs/cgroup/a/memory.max"]);
}

#[test]
fn one_level_that_cannot_be_read_makes_the_fact_unread() {
    for level in ["", "/a", "/a/b"] {
        let tree = Tree::v2("/a/b");
        tree.file("/sys/fs/cgroup/a/b/memory.max", "77\n");
        let file = format!("/sys/fs/cgroup{level}/memory.max");
        tree.unreadable(&file);
        unread(&tree.memory().cgroup_max, &[&file, "directory"]);
    }
}

#[test]
fn a_version_1_line_goes_before_the_unified_one() {
    let tree = Tree::v1("/old");
    tree.file("/proc/self/cgroup", "0::/new\n4:hugetlb,memory:/old\n3:pids:/old\n");
    tree.mounts(&[
        (31, 1, "/", "/sys/fs/cgroup", "tmpfs tmpfs ro"),
        (32, 31, "/", "/sys/fs/cgroup/unified", "cgroup2 cgroup2 rw"),
        (33, 31, "/", "/sys/fs/cgroup/memory", "cgroup cgroup rw,hugetlb,memory"),
        (34, 31, "/", "/sys/fs/cgroup/pids", "cgroup cgroup rw,pids"),
    ]);
    tree.v2_group("/sys/fs/cgroup/unified/new");
    tree.file("/sys/fs/cgroup/unified/cgroup.controllers", "cpu\n");
    tree.file("/sys/fs/cgroup/unified/new/memory.max", "11\n");
    tree.file("/sys/fs/cgroup/unified/new/cpu.max", "50000 100000\n");
    tree.file("/sys/fs/cgroup/memory/old/memory.limit_in_bytes", "77\n");
    let at = "/sys/fs/cgroup/memory/old/memory.limit_in_bytes";
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, at));
    assert_eq!(tree.memory().cgroup_high, Fact::Unlimited);
    // The one that no version 1 line names is in the unified hierarchy.
    assert_eq!(tree.cpu().quota, tree.limited(0.5, "/sys/fs/cgroup/unified/new/cpu.max"));
}

#[test]
fn on_a_hybrid_system_the_unified_hierarchy_may_have_no_controllers() {
    let tree = Tree::v1("/old");
    tree.file("/proc/self/cgroup", "4:memory:/old\n1:name=systemd:/s\n0::/s\n");
    tree.mounts(&[
        (32, 1, "/", "/sys/fs/cgroup/unified", "cgroup2 cgroup2 rw"),
        (33, 1, "/", "/sys/fs/cgroup/memory", "cgroup cgroup rw,memory"),
    ]);
    tree.file("/sys/fs/cgroup/unified/cgroup.controllers", "");
    tree.file("/sys/fs/cgroup/unified/s/cgroup.controllers", "");
    tree.file("/sys/fs/cgroup/memory/old/memory.limit_in_bytes", "77\n");
    assert_eq!(tree.memory().cgroup_max.limit(), Some(77));
    assert_eq!(tree.cpu().quota, Fact::Unlimited);
    assert_eq!(tree.cpu().cgroup_threads, Fact::Unlimited);
}

#[test]
fn a_kernel_without_groups_limits_nothing() {
    let tree = Tree::new();
    let memory = tree.memory();
    assert_eq!((&memory.cgroup_max, &memory.cgroup_high), (&Fact::Unlimited, &Fact::Unlimited));
    assert_eq!(memory.least().limit(), Some(65_536 * MIB));
    assert_eq!(tree.cpu().quota, Fact::Unlimited);
    assert_eq!(tree.cpu().cgroup_threads, Fact::Unlimited);
}

#[test]
fn without_proc_nothing_is_known() {
    let tree = Tree::new();
    tree.remove("/proc");
    let (memory, cpu) = (tree.memory(), tree.cpu());
    for fact in [&memory.cgroup_max, &memory.cgroup_high, &memory.data, &memory.address_space] {
        unread(fact, &["/proc/self/"]);
    }
    unread(&memory.physical, &["/proc/meminfo"]);
    unread(&memory.least(), &["/proc/"]);
    unread(&cpu.quota, &["/proc/self/status"]);
    unread(&cpu.cgroup_threads, &["/proc/self/status"]);
    unread(&cpu.user_threads, &["/proc/self/limits"]);
    assert_eq!((cpu.allowed, memory.mapped_bytes, memory.resident_bytes), (None, None, None));
}

#[test]
fn membership_that_makes_no_sense_is_unread() {
    for text in ["", "\n", "garbage", "0::a\n", "0:/\n", "0::/a\n0::/b\n", "4:memory"] {
        let tree = Tree::v2("/a");
        tree.file("/proc/self/cgroup", text);
        unread(&tree.memory().cgroup_max, &["/proc/self/cgroup"]);
        unread(&tree.cpu().quota, &["/proc/self/cgroup"]);
        unread(&tree.cpu().cgroup_threads, &["/proc/self/cgroup"]);
    }
}
