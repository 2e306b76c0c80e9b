//! The limits and sizes of the process, and the machine's memory.

use admit::{Fact, GIB, KIB, MIB};

use crate::tree::{STATUS, Tree, limits, unread};

#[test]
fn the_machines_memory_is_found() {
    let tree = Tree::new();
    let at = format!("{}, MemTotal", tree.path("/proc/meminfo").display());
    assert_eq!(tree.memory().physical, Fact::Limited { limit: 64 * GIB, at });
    for text in ["", "MemTotal:\n", "MemTotal: 5\n", "MemTotal: x kB\n", "MemTotal: 0 kB\n"] {
        tree.file("/proc/meminfo", text);
        unread(&tree.memory().physical, &["/proc/meminfo"]);
        unread(&tree.memory().least(), &["/proc/meminfo"]);
    }
    tree.file("/proc/meminfo", format!("MemTotal: {} kB\n", u64::MAX));
    unread(&tree.memory().physical, &["/proc/meminfo"]);
}

#[test]
fn soft_limits_are_found_in_their_columns() {
    let tree = Tree::new();
    assert_eq!(tree.memory().address_space, Fact::Unlimited);
    assert_eq!(tree.memory().data, Fact::Unlimited);
    tree.file("/proc/self/limits", limits("4294967296", "2147483648", "unlimited"));
    let limited = |limit, at| Fact::Limited { limit, at: String::from(at) };
    assert_eq!(tree.memory().address_space, limited(4 * GIB, "RLIMIT_AS"));
    assert_eq!(tree.memory().data, limited(2 * GIB, "RLIMIT_DATA"));
}

#[test]
fn limits_that_make_no_sense_are_unread() {
    let tree = Tree::new();
    for text in
        ["", "Max address space", "Max address space9  1  1\n", "Max address space  -1  -1\n"]
    {
        tree.file("/proc/self/limits", text);
        unread(&tree.memory().address_space, &["/proc/self/limits", "Max address space"]);
        unread(&tree.memory().data, &["/proc/self/limits"]);
        unread(&tree.cpu().user_threads, &["/proc/self/limits"]);
    }
}

#[test]
fn what_is_mapped_is_already_spent_of_the_address_space() {
    let tree = Tree::new();
    tree.file("/proc/self/limits", limits("4294967296", "unlimited", "unlimited"));
    let memory = tree.memory();
    assert_eq!(memory.mapped_bytes, Some(300 * MIB));
    assert_eq!(memory.resident_bytes, Some(10 * MIB));
    let at = String::from("RLIMIT_AS, less 300 MiB mapped");
    assert_eq!(memory.least(), Fact::Limited { limit: 4 * GIB - 300 * MIB, at });

    tree.file("/proc/self/limits", limits("1024", "unlimited", "unlimited"));
    assert_eq!(tree.memory().least().limit(), Some(0));
}

#[test]
fn an_address_space_of_which_an_unknown_part_is_mapped_is_unread() {
    let tree = Tree::new();
    tree.file("/proc/self/status", STATUS.replace("VmSize", "VmOther"));
    assert_eq!(tree.memory().least().limit(), Some(64 * GIB));
    tree.file("/proc/self/limits", limits("4294967296", "unlimited", "unlimited"));
    unread(&tree.memory().least(), &["RLIMIT_AS"]);
}

#[test]
fn the_least_of_all_limits_is_told_with_its_source() {
    let tree = Tree::v2("/a");
    tree.file("/sys/fs/cgroup/a/memory.max", format!("{}\n", 3 * GIB));
    assert_eq!(tree.memory().least(), tree.limited(3 * GIB, "/sys/fs/cgroup/a/memory.max"));
    tree.file("/sys/fs/cgroup/a/memory.high", format!("{}\n", 2 * GIB));
    assert_eq!(tree.memory().least(), tree.limited(2 * GIB, "/sys/fs/cgroup/a/memory.high"));
    tree.file("/proc/self/limits", limits("unlimited", "1073741824", "unlimited"));
    let data = Fact::Limited { limit: GIB, at: String::from("RLIMIT_DATA") };
    assert_eq!(tree.memory().least(), data);
    tree.file("/proc/meminfo", "MemTotal: 4 kB\n");
    assert_eq!(tree.memory().least().limit(), Some(4 * KIB));
    // A limit above the machine's memory is not believed.
    tree.file("/proc/meminfo", format!("MemTotal: {} kB\n", GIB / KIB / 2));
    assert_eq!(tree.memory().least().limit(), Some(GIB / 2));
}

#[test]
fn facts_print_one_to_a_line() {
    let tree = Tree::v2("/a");
    tree.file("/sys/fs/cgroup/a/memory.max", format!("{}\n", 512 * MIB));
    tree.unreadable("/sys/fs/cgroup/a/memory.high");
    tree.file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    tree.file("/proc/self/limits", limits("4294967296", "unlimited", "100"));
    let root = tree.path("/").display().to_string();
    let text = format!("{}\n{}\n", tree.memory(), tree.cpu()).replace(&root, "/");
    let parallelism = std::thread::available_parallelism().unwrap();
    assert_eq!(
        text,
        format!(
            "control group: 512 MiB (/sys/fs/cgroup/a/memory.max)\n\
             control group, slowed down above: could not be read \
             (/sys/fs/cgroup/a/memory.high: Is a directory (os error 21))\n\
             machine: 64 GiB (/proc/meminfo, MemTotal)\n\
             address space: 4 GiB (RLIMIT_AS)\n\
             data: unlimited\n\
             mapped: 300 MiB\n\
             resident: 10 MiB\n\
             available parallelism: {parallelism}\n\
             processors allowed: 4\n\
             quota in processors: 1.5 (/sys/fs/cgroup/a/cpu.max)\n\
             more threads in the control group: unlimited\n\
             more threads of the user: 100 (RLIMIT_NPROC, less 0 threads of user 1000)\n"
        )
    );
    tree.remove("/proc/self/status");
    assert!(tree.memory().to_string().ends_with("mapped: unknown\nresident: unknown"));
    assert!(tree.cpu().to_string().contains("\nprocessors allowed: unknown\n"));
}
