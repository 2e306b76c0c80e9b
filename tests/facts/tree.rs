//! A directory tree that stands for a machine.

use std::fs;
use std::path::{Path, PathBuf};

use admit::{CpuFacts, Fact, MemoryFacts};
use tempfile::TempDir;

/// Where the kernel's documentation mounts the unified hierarchy.
pub(crate) const V2: &str = "/sys/fs/cgroup";

pub(crate) const STATUS: &str = "Name:\ttest\nUid:\t1000\t1000\t1000\t1000\n\
    VmSize:\t  307200 kB\nVmRSS:\t   10240 kB\nThreads:\t1\nCapEff:\t0000000000000000\n\
    Cpus_allowed_list:\t0-3\n";

/// The limits as the kernel prints them; `address`, `data` and `processes` are the soft ones.
pub(crate) fn limits(address: &str, data: &str, processes: &str) -> String {
    let line = |name, soft, unit| format!("{name:<25} {soft:<20} {:<20} {unit:<10}\n", "unlimited");
    [
        line("Limit", "Soft Limit", "Units"),
        line("Max cpu time", "unlimited", "seconds"),
        line("Max data size", data, "bytes"),
        line("Max stack size", "8388608", "bytes"),
        line("Max processes", processes, "processes"),
        line("Max address space", address, "bytes"),
    ]
    .concat()
}

pub(crate) struct Tree {
    root: TempDir,
}

impl Tree {
    /// A machine with 64 GiB, a process without limits of its own, and no control groups.
    pub(crate) fn new() -> Tree {
        let tree = Tree { root: tempfile::tempdir().unwrap() };
        tree.file("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:          100000 kB\n");
        tree.file("/proc/self/status", STATUS);
        tree.file("/proc/self/limits", limits("unlimited", "unlimited", "unlimited"));
        tree.user_namespace(4_026_531_837);
        tree
    }

    /// With the process in `group` of the unified hierarchy, of which all is mounted. The groups
    /// above are there, and limit nothing.
    pub(crate) fn v2(group: &str) -> Tree {
        let tree = Tree::new();
        tree.file("/proc/self/cgroup", format!("0::{group}\n"));
        tree.mounts(&[(30, 1, "/", V2, "cgroup2 cgroup2 rw")]);
        tree.file(format!("{V2}/cgroup.controllers"), "cpuset cpu io memory pids\n");
        for above in Path::new(group).ancestors().filter(|above| above.parent().is_some()) {
            tree.v2_group(&format!("{V2}{}", above.display()));
        }
        tree
    }

    /// A directory of the unified hierarchy that limits nothing.
    pub(crate) fn v2_group(&self, directory: &str) {
        for (file, text) in [
            ("cgroup.controllers", "cpu memory pids\n"),
            ("memory.max", "max\n"),
            ("memory.high", "max\n"),
            ("cpu.max", "max 100000\n"),
            ("pids.max", "max\n"),
            ("pids.current", "3\n"),
        ] {
            self.file(format!("{directory}/{file}"), text);
        }
    }

    /// With the process in `group` of each of three hierarchies, of which all is mounted. The
    /// groups above are there, and limit nothing.
    pub(crate) fn v1(group: &str) -> Tree {
        let tree = Tree::new();
        tree.file(
            "/proc/self/cgroup",
            format!("9:name=systemd:/x\n4:memory:{group}\n3:pids:{group}\n2:cpu,cpuacct:{group}\n"),
        );
        tree.mounts(&[
            (31, 1, "/", "/sys/fs/cgroup", "tmpfs tmpfs ro"),
            (32, 31, "/", "/sys/fs/cgroup/memory", "cgroup cgroup rw,memory"),
            (33, 31, "/", "/sys/fs/cgroup/pids", "cgroup cgroup rw,pids"),
            (34, 31, "/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup cgroup rw,cpu,cpuacct"),
        ]);
        for above in Path::new(group).ancestors() {
            tree.v1_group(above.to_str().unwrap().trim_end_matches('/'));
        }
        for controller in ["pids", "cpu,cpuacct"] {
            let root = tree.path(format!("/sys/fs/cgroup/{controller}"));
            for file in ["pids.max", "pids.current"] {
                let _ = fs::remove_file(root.join(file));
            }
        }
        tree
    }

    /// A group in each of the three hierarchies that limits nothing.
    pub(crate) fn v1_group(&self, group: &str) {
        let none = i64::MAX / 4096 * 4096;
        for (controller, file, text) in [
            ("memory", "cgroup.procs", String::new()),
            ("memory", "memory.limit_in_bytes", format!("{none}\n")),
            ("memory", "memory.stat", format!("cache 1\nhierarchical_memory_limit {none}\n")),
            ("pids", "cgroup.procs", String::new()),
            ("pids", "pids.max", String::from("max\n")),
            ("pids", "pids.current", String::from("3\n")),
            ("cpu,cpuacct", "cgroup.procs", String::new()),
            ("cpu,cpuacct", "cpu.cfs_quota_us", String::from("-1\n")),
            ("cpu,cpuacct", "cpu.cfs_period_us", String::from("100000\n")),
            ("cpu,cpuacct", "cpu.shares", String::from("2\n")),
        ] {
            self.file(format!("/sys/fs/cgroup/{controller}{group}/{file}"), text);
        }
    }

    /// Replaces all mounts: the root, and these, each with its number, that of the mount it is on,
    /// its root, its point, and what comes behind the separator.
    pub(crate) fn mounts(&self, mounts: &[(u32, u32, &str, &str, &str)]) {
        let mut text = String::from("1 0 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n");
        for (id, parent, root, point, behind) in mounts {
            text += &format!("{id} {parent} 0:{id} {root} {point} rw,nosuid shared:9 - {behind}\n");
        }
        self.file("/proc/self/mountinfo", text);
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn file(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Puts the process into a user namespace; the initial one has a fixed number.
    pub(crate) fn user_namespace(&self, inode: u32) {
        let path = self.path("/proc/self/ns/user");
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(format!("user:[{inode}]"), path).unwrap();
    }

    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    /// Makes a file one that cannot be read, also by root: a directory.
    pub(crate) fn unreadable(&self, path: impl AsRef<Path>) {
        let path = self.path(path);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path).unwrap();
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path.as_ref().strip_prefix("/").unwrap())
    }

    pub(crate) fn memory(&self) -> MemoryFacts {
        MemoryFacts::read_from(self.root.path())
    }

    pub(crate) fn cpu(&self) -> CpuFacts {
        CpuFacts::read_from(self.root.path())
    }

    /// The limit that a file of the tree sets.
    pub(crate) fn limited<T>(&self, limit: T, file: &str) -> Fact<T> {
        Fact::Limited { limit, at: self.path(file).display().to_string() }
    }
}

/// Why a fact could not be read.
#[track_caller]
pub(crate) fn why<T: std::fmt::Debug>(fact: &Fact<T>) -> &str {
    match fact {
        Fact::Unread { why } => why,
        fact => panic!("it was read: {fact:?}"),
    }
}

/// Holds that a fact could not be read, and that the reason names these.
#[track_caller]
pub(crate) fn unread<T: std::fmt::Debug>(fact: &Fact<T>, named: &[&str]) {
    let why = why(fact);
    for name in named {
        assert!(why.contains(name), "{name:?} is not in {why:?}");
    }
}
