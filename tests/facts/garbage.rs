//! Files with anything in them.

use std::fmt::Debug;

use admit::Fact;
use proptest::prelude::*;

use crate::tree::{Tree, limits, why};

/// All files that are read, of either version.
const FILES: [&str; 19] = [
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/self/limits",
    "/proc/7/status",
    "/sys/fs/cgroup/a/cgroup.controllers",
    "/sys/fs/cgroup/a/memory.max",
    "/sys/fs/cgroup/a/memory.high",
    "/sys/fs/cgroup/a/cpu.max",
    "/sys/fs/cgroup/a/pids.max",
    "/sys/fs/cgroup/a/pids.current",
    "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/a/memory.stat",
    "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us",
    "/sys/fs/cgroup/pids/a/pids.max",
    "/sys/fs/cgroup/pids/a/pids.current",
    "/sys/fs/cgroup/cgroup.controllers",
];

fn tree(unified: bool) -> Tree {
    let tree = if unified { Tree::v2("/a") } else { Tree::v1("/a") };
    tree.file("/proc/self/limits", limits("4294967296", "4294967296", "100"));
    tree.file("/proc/7/status", "Uid:\t1000\nThreads:\t3\n");
    if unified {
        tree.file("/sys/fs/cgroup/a/pids.max", "10\n");
    } else {
        tree.file("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "1000\n");
        tree.file("/sys/fs/cgroup/pids/a/pids.max", "10\n");
    }
    tree
}

/// Whether a fact is unread, and if so that it says why in few words.
fn is_unread<T: Debug>(fact: &Fact<T>, root: usize) -> bool {
    if let Fact::Unread { why } = fact {
        assert!(why.len() < root + 200, "{} bytes: {why}", why.len());
        assert!(why.chars().all(|c| !c.is_control()), "{why:?}");
    }
    matches!(fact, Fact::Unread { .. })
}

/// How many facts are unread.
fn unread(tree: &Tree) -> usize {
    let root = tree.path("/").as_os_str().len();
    let (memory, cpu) = (tree.memory(), tree.cpu());
    let _ = (memory.to_string(), cpu.to_string());
    let memory_facts = [
        &memory.cgroup_max,
        &memory.cgroup_high,
        &memory.physical,
        &memory.address_space,
        &memory.data,
        &memory.least(),
        &cpu.cgroup_threads,
        &cpu.user_threads,
    ];
    let unread = memory_facts.into_iter().filter(|fact| is_unread(fact, root)).count();
    unread + usize::from(is_unread(&cpu.quota, root))
}

/// Spoils each file of both kinds of machine in turn, and holds that facts are unread if and only
/// if the file counts by itself.
fn spoil_each(spoil: impl Fn(&Tree, &str), by_itself: impl Fn(&str) -> bool) {
    for unified in [true, false] {
        assert_eq!(unread(&tree(unified)), 0);
        for file in FILES {
            let tree = tree(unified);
            if tree.path(file).exists() {
                spoil(&tree, file);
                assert_eq!(unread(&tree) > 0, by_itself(file), "{file}, {unified}");
            }
        }
    }
}

/// This one is asked only where another file is missing.
fn counts(file: &str) -> bool {
    file != "/sys/fs/cgroup/a/cgroup.controllers"
}

#[test]
fn a_mebibyte_of_garbage_is_unread_and_told_in_a_few_words() {
    let binary: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 7 + at / 251) as u8).collect();
    for garbage in [binary, vec![b'X'; 1 << 20]] {
        spoil_each(|tree, file| tree.file(file, &garbage), counts);
    }
}

#[test]
fn an_empty_file_is_unread() {
    let list = "/sys/fs/cgroup/cgroup.controllers";
    spoil_each(|tree, file| tree.file(file, ""), |file| counts(file) && file != list);
}

#[test]
fn a_file_that_cannot_be_read_is_unread() {
    spoil_each(|tree, file| tree.unreadable(file), counts);
}

#[test]
fn a_file_of_more_than_16_mebibytes_is_unread() {
    let tree = tree(true);
    let mut text = Vec::from("77\n");
    text.resize((16 << 20) + 1, b' ');
    tree.file("/sys/fs/cgroup/a/memory.max", &text);
    assert!(why(&tree.memory().cgroup_max).contains("longer than 16 MiB"));
    text.pop();
    tree.file("/sys/fs/cgroup/a/memory.max", &text);
    assert_eq!(tree.memory().cgroup_max.limit(), Some(77));
}

/// Bytes, or what looks like a part of one of the files.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        "0::",
        "4:memory:",
        "2:cpu,cpuacct:",
        "3:pids:",
        "/",
        "/a",
        "..",
        " ",
        "\n",
        "\t",
        ":",
        "-1",
        "max",
        "0",
        "1",
        "100000",
        "18446744073709551615",
        "99999999999999999999",
        "kB",
        " - ",
        "cgroup2 cgroup2 rw",
        "cgroup cgroup rw,memory",
        "30 1 0:3 / /sys/fs/cgroup rw",
        "\\040",
        "MemTotal:",
        "VmSize:",
        "Uid:",
        "Threads:",
        "CapEff:",
        "Cpus_allowed_list:",
        "0-3,5",
        "Max processes",
        "Max address space",
        "Max data size",
        "unlimited",
        "cpu memory pids",
        "hierarchical_memory_limit",
        "30 30",
        "1 30 0:1 /.. /",
        "\u{fffd}",
    ]);
    let parts = prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat().into_bytes());
    prop_oneof![parts, prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_in_any_file_makes_the_readers_panic(
        unified: bool,
        texts in prop::collection::vec((prop::sample::select(FILES.to_vec()), text()), 1..4),
    ) {
        let tree = tree(unified);
        for (file, text) in texts {
            tree.file(file, text);
        }
        let _ = (tree.memory().to_string(), tree.memory().least(), tree.cpu().to_string());
    }

    #[test]
    fn no_tree_makes_the_readers_panic(
        files in prop::collection::vec((prop::sample::select(FILES.to_vec()), text()), 0..20),
    ) {
        let tree = Tree::new();
        tree.remove("/proc");
        for (file, text) in files {
            tree.file(file, text);
        }
        let _ = (tree.memory().to_string(), tree.memory().least(), tree.cpu().to_string());
    }
}
