//! Where the groups are mounted, and how paths are written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use admit::Fact;

use crate::tree::{Tree, unread};

const TMPFS: &str = "tmpfs tmpfs rw";
const MEMORY: &str = "cgroup cgroup rw,memory";
const CGROUP2: &str = "cgroup2 cgroup2 rw";

#[test]
fn the_mounts_root_is_taken_from_the_groups_path() {
    // A container of Docker on version 1, in the namespace of the host.
    let tree = Tree::v1("/");
    tree.file("/proc/self/cgroup", "4:memory:/docker/0123\n");
    tree.mounts(&[(32, 1, "/docker/0123", "/sys/fs/cgroup/memory", MEMORY)]);
    tree.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "77\n");
    let at = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, at));

    tree.file("/proc/self/cgroup", "4:memory:/docker/0123/a\n");
    unread(&tree.memory().cgroup_max, &["/sys/fs/cgroup/memory/a/memory.limit_in_bytes"]);
    tree.v1_group("/a");
    tree.file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "66\n");
    let at = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
    assert_eq!(tree.memory().cgroup_max, tree.limited(66, at));
}

#[test]
fn the_mounts_root_is_a_prefix_by_whole_names() {
    let tree = Tree::v2("/c");
    tree.file("/proc/self/cgroup", "0::/tst/abc\n");
    tree.mounts(&[(30, 1, "/tst/ab", "/sys/fs/cgroup", CGROUP2)]);
    unread(&tree.memory().cgroup_max, &["/tst/abc", "only what is below /tst/ab"]);
}

#[test]
fn any_mount_point_will_do() {
    let tree = Tree::v2("/a");
    tree.mounts(&[(30, 1, "/", "/run/groups", CGROUP2)]);
    tree.file("/run/groups/cgroup.controllers", "memory\n");
    tree.v2_group("/run/groups/a");
    tree.file("/run/groups/a/memory.max", "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/run/groups/a/memory.max"));
}

#[test]
fn a_group_is_read_in_the_closest_mount_that_can_be_read() {
    let tree = Tree::v2("/a/b");
    tree.mounts(&[
        (30, 1, "/", "/all", CGROUP2),
        (31, 1, "/a/b", "/closest", CGROUP2),
        (32, 1, "/a", "/close", CGROUP2),
    ]);
    tree.file("/all/cgroup.controllers", "memory\n");
    for (group, limit) in [("/all/a/b", 3), ("/all/a", 9), ("/close", 9), ("/close/b", 2)] {
        tree.v2_group(group);
        tree.file(format!("{group}/memory.max"), format!("{limit}\n"));
    }
    // The closest is not there at all, as if it could not be entered.
    assert_eq!(tree.memory().cgroup_max, tree.limited(2, "/close/b/memory.max"));
    tree.v2_group("/closest");
    tree.file("/closest/memory.max", "1\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(1, "/closest/memory.max"));
    tree.unreadable("/closest/memory.max");
    assert_eq!(tree.memory().cgroup_max, tree.limited(2, "/close/b/memory.max"));
    tree.remove("/close");
    assert_eq!(tree.memory().cgroup_max, tree.limited(3, "/all/a/b/memory.max"));
    tree.remove("/all");
    unread(&tree.memory().cgroup_max, &["/all"]);
}

#[test]
fn a_mount_of_the_own_group_does_not_hide_the_limits_above_it() {
    let tree = Tree::v2("/a/b");
    tree.mounts(&[
        (30, 1, "/", "/sys/fs/cgroup", CGROUP2),
        (31, 1, "/a/b", "/own", CGROUP2),
        (32, 1, "/a/b", "/own/again", CGROUP2),
    ]);
    for group in ["/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b", "/own", "/own/again"] {
        tree.v2_group(group);
        tree.file(format!("{group}/memory.max"), "max\n");
    }
    tree.file("/sys/fs/cgroup/cgroup.controllers", "memory\n");
    assert_eq!(tree.memory().cgroup_max, Fact::Unlimited);
    tree.file("/sys/fs/cgroup/a/memory.max", "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/a/memory.max"));
    // Nor is a limit above taken for none that nobody can read.
    tree.unreadable("/sys/fs/cgroup/a/memory.max");
    unread(&tree.memory().cgroup_max, &["/sys/fs/cgroup/a/memory.max"]);
}

#[test]
fn any_number_of_mounts_of_other_groups_is_passed_over() {
    let tree = Tree::v2("/a");
    let points: Vec<String> = (0..300).map(|number| format!("/other/{number}")).collect();
    let mut mounts: Vec<_> =
        points.iter().zip(30..).map(|(point, id)| (id, 1, "/b", point.as_str(), CGROUP2)).collect();
    mounts.push((999, 1, "/a", "/own", CGROUP2));
    tree.mounts(&mounts);
    tree.v2_group("/own");
    tree.file("/own/memory.max", "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/own/memory.max"));
}

#[test]
fn a_mount_that_another_one_covers_is_not_read() {
    // What is seen at the point is the root of all groups, not the own group: "no file, no limit"
    // would be wrong.
    let tree = Tree::v2("/");
    tree.file("/proc/self/cgroup", "0::/a\n");
    tree.v2_group("/sys/fs/cgroup/a");
    tree.file("/sys/fs/cgroup/a/memory.max", "77\n");
    tree.mounts(&[
        (30, 1, "/a", "/sys/fs/cgroup", CGROUP2),
        (31, 30, "/", "/sys/fs/cgroup", CGROUP2),
    ]);
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, "/sys/fs/cgroup/a/memory.max"));

    tree.mounts(&[
        (30, 1, "/a", "/sys/fs/cgroup", CGROUP2),
        (31, 30, "/b", "/sys/fs/cgroup", CGROUP2),
    ]);
    unread(&tree.memory().cgroup_max, &["only what is below /b"]);
    tree.mounts(&[(30, 1, "/", "/sys/fs/cgroup", CGROUP2), (31, 1, "/", "/sys", TMPFS)]);
    unread(&tree.memory().cgroup_max, &["covered"]);
    tree.mounts(&[(30, 1, "/", "/sys/fs/cgroup", CGROUP2), (31, 30, "/", "/sys/fs/cgroup", TMPFS)]);
    unread(&tree.memory().cgroup_max, &["covered"]);
}

#[test]
fn a_path_may_have_colons_spaces_and_dots_in_it() {
    for group in ["/a:cri-containerd:b", "/a b", "/a..b/..c", "/- cgroup rw", "/ä\\040"] {
        let tree = Tree::v2(group);
        let file = format!("/sys/fs/cgroup{group}/memory.max");
        tree.file(&file, "77\n");
        assert_eq!(tree.memory().cgroup_max, tree.limited(77, &file));
    }
}

#[test]
fn a_path_need_not_be_utf_8() {
    let tree = Tree::v2("/");
    tree.file("/proc/self/cgroup", b"0::/a\xff\n");
    let file = |name: &[u8]| Path::new("/sys/fs/cgroup").join(OsStr::from_bytes(name));
    tree.file(file(b"a\xff/cgroup.controllers"), "memory\n");
    tree.file(file(b"a\xff/memory.max"), "77\n");
    assert_eq!(tree.memory().cgroup_max.limit(), Some(77));
}

#[test]
fn mount_points_and_roots_are_unescaped() {
    let tree = Tree::new();
    tree.file("/proc/self/cgroup", "0::/a b/c\\d/e\n");
    tree.mounts(&[(30, 1, r"/a\040b/c\134d", r"/my\040groups\011\012\134", CGROUP2)]);
    let point = "/my groups\t\n\\";
    tree.v2_group(point);
    tree.v2_group(&format!("{point}/e"));
    let file = format!("{point}/e/memory.max");
    tree.file(&file, "77\n");
    assert_eq!(tree.memory().cgroup_max, tree.limited(77, &file));
}

#[test]
fn options_may_have_spaces_and_optional_fields_vary() {
    for (optional, options) in [
        ("", "rw,name=a b - c,memory"),
        ("shared:1 ", "rw,memory"),
        ("shared:1 master:2 propagate_from:3 unbindable ", "memory"),
    ] {
        let tree = Tree::v1("/a");
        tree.file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "77\n");
        let line = format!("30 1 0:1 / /sys/fs/cgroup/memory rw {optional}- cgroup  {options}\n");
        tree.file("/proc/self/mountinfo", line);
        assert_eq!(tree.memory().cgroup_max.limit(), Some(77), "{optional}, {options}");
    }
}

#[test]
fn a_cut_list_of_mounts_is_unread() {
    let tree = Tree::v2("/a");
    for text in ["", "30", "30 1 0:1 / /sys/fs/cgroup rw -", "30 1 0:1 / /sys/fs/cgroup rw"] {
        tree.file("/proc/self/mountinfo", text);
        unread(&tree.memory().cgroup_max, &["/proc/self/mountinfo", "not mounted"]);
    }
    tree.unreadable("/proc/self/mountinfo");
    unread(&tree.memory().cgroup_max, &["/proc/self/mountinfo"]);
}
