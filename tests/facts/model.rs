//! Hierarchies with limits that are known, written as files, against the plain minimum.

use admit::Fact;
use proptest::prelude::*;

use crate::tree::{Tree, V2};

/// One group's limits. `None` is none.
#[derive(Clone, Debug)]
struct Limits {
    max: Option<u64>,
    high: Option<u64>,
    /// A quota and a period.
    cpu: Option<(u32, u32)>,
    /// A limit and what runs.
    pids: Option<(u32, u32)>,
    name: &'static str,
}

fn limits() -> impl Strategy<Value = Limits> {
    let bytes = || prop::option::of(prop_oneof![0..1_u64 << 40, 0..64_u64]);
    (
        bytes(),
        bytes(),
        prop::option::of((1..2_000_000_u32, 1000..=1_000_000_u32)),
        prop::option::of((any::<u32>(), any::<u32>())),
        prop::sample::select(vec!["a", "b:c", "d e", "f\\g", "..h", "-", "i.slice"]),
    )
        .prop_map(|(max, high, cpu, pids, name)| Limits { max, high, cpu, pids, name })
}

/// What the facts have to be.
#[derive(Debug, PartialEq)]
struct Least {
    max: Option<u64>,
    high: Option<u64>,
    quota: Option<f64>,
    threads: Option<u64>,
}

fn least(groups: &[Limits]) -> Least {
    let quota = groups.iter().filter_map(|group| group.cpu);
    let threads = groups.iter().filter_map(|group| group.pids);
    Least {
        max: groups.iter().filter_map(|group| group.max).min(),
        high: groups.iter().filter_map(|group| group.high).min(),
        quota: quota.map(|(quota, period)| f64::from(quota) / f64::from(period)).reduce(f64::min),
        threads: threads.map(|(max, current)| u64::from(max.saturating_sub(current))).min(),
    }
}

fn found(tree: &Tree) -> Least {
    let (memory, cpu) = (tree.memory(), tree.cpu());
    for fact in [&memory.cgroup_max, &memory.cgroup_high, &cpu.cgroup_threads] {
        assert!(!matches!(fact, Fact::Unread { .. }), "{fact:?}");
    }
    assert!(!matches!(cpu.quota, Fact::Unread { .. }), "{cpu}");
    Least {
        max: memory.cgroup_max.limit(),
        high: memory.cgroup_high.limit(),
        quota: cpu.quota.limit(),
        threads: cpu.cgroup_threads.limit(),
    }
}

/// The path of the group with all of these above it.
fn path(groups: &[Limits]) -> String {
    groups.iter().map(|group| format!("/{}", group.name)).collect()
}

fn or_root(path: String) -> String {
    if path.is_empty() { String::from("/") } else { path }
}

fn or_max<T: ToString>(limit: Option<T>) -> String {
    limit.map_or(String::from("max"), |limit| limit.to_string())
}

/// `hidden` of the groups are above the mounts' root.
fn unified(groups: &[Limits], hidden: usize) -> Tree {
    let tree = Tree::v2("/");
    tree.file("/proc/self/cgroup", format!("1:name=systemd:/x\n0::{}\n", or_root(path(groups))));
    tree.mounts(&[(30, 1, &root(groups, hidden), V2, "cgroup2 cgroup2 rw")]);
    for level in hidden..=groups.len() {
        let Some(group) = level.checked_sub(1).map(|at| &groups[at]) else { continue };
        let directory = format!("{V2}{}", path(&groups[hidden..level]));
        tree.v2_group(&directory);
        let cpu = group.cpu.map(|(quota, period)| format!("{quota} {period}"));
        tree.file(format!("{directory}/memory.max"), or_max(group.max) + "\n");
        tree.file(format!("{directory}/memory.high"), or_max(group.high) + "\n");
        tree.file(format!("{directory}/cpu.max"), cpu.unwrap_or_else(|| String::from("max 1000")));
        tree.file(format!("{directory}/pids.max"), or_max(group.pids.map(|pids| pids.0)) + "\n");
        let current = group.pids.map_or(1, |pids| pids.1);
        tree.file(format!("{directory}/pids.current"), format!("{current}\n"));
    }
    tree
}

fn own(groups: &[Limits], hidden: usize) -> Tree {
    const BASE: &str = "/sys/fs/cgroup";
    let none = i64::MAX as u64 / 4096 * 4096;
    let tree = Tree::v1("/");
    let group = or_root(path(groups));
    let lines = format!("0::/x\n4:memory:{group}\n3:pids:{group}\n2:cpu,cpuacct:{group}\n");
    tree.file("/proc/self/cgroup", lines);
    let root = root(groups, hidden);
    tree.mounts(&[
        (32, 1, &root, "/sys/fs/cgroup/memory", "cgroup cgroup rw,memory"),
        (33, 1, &root, "/sys/fs/cgroup/pids", "cgroup cgroup rw,pids"),
        (34, 1, &root, "/sys/fs/cgroup/cpu,cpuacct", "cgroup cgroup rw,cpu,cpuacct"),
    ]);
    for level in hidden..=groups.len() {
        let Some(group) = level.checked_sub(1).map(|at| &groups[at]) else { continue };
        let way = path(&groups[hidden..level]);
        tree.v1_group(&way);
        let max = group.max.unwrap_or(none);
        tree.file(format!("{BASE}/memory{way}/memory.limit_in_bytes"), format!("{max}\n"));
        let all = least(&groups[..level]).max.unwrap_or(none);
        let stat = format!("cache 0\nhierarchical_memory_limit {all}\ntotal_cache 5\n");
        tree.file(format!("{BASE}/memory{way}/memory.stat"), stat);
        if let Some((quota, period)) = group.cpu {
            tree.file(format!("{BASE}/cpu,cpuacct{way}/cpu.cfs_quota_us"), format!("{quota}\n"));
            tree.file(format!("{BASE}/cpu,cpuacct{way}/cpu.cfs_period_us"), format!("{period}\n"));
        }
        if let Some((max, current)) = group.pids {
            tree.file(format!("{BASE}/pids{way}/pids.max"), format!("{max}\n"));
            tree.file(format!("{BASE}/pids{way}/pids.current"), format!("{current}\n"));
        }
    }
    tree
}

/// The root of the mounts, as mountinfo writes it.
fn root(groups: &[Limits], hidden: usize) -> String {
    or_root(path(&groups[..hidden]).replace('\\', r"\134").replace(' ', r"\040"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_least_limit_that_can_be_seen_is_found(
        groups in prop::collection::vec(limits(), 0..6),
        hidden in 0..6_usize,
    ) {
        let hidden = hidden.min(groups.len());
        // The mount's root is the lowest of those that are hidden, and is itself seen.
        let seen = &groups[hidden.saturating_sub(1)..];
        prop_assert_eq!(found(&unified(&groups, hidden)), least(seen));

        let in_v1 = Least { high: None, max: least(&groups).max, ..least(seen) };
        prop_assert_eq!(found(&own(&groups, hidden)), in_v1);
    }
}
