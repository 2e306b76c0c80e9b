//! Memory control groups of the trials' own making, in either version of the hierarchy.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PREFIX: &str = "admit-oom-";

/// Where groups can be made.
#[derive(Clone, Debug)]
pub(crate) enum Hierarchy {
    V1 { memory: PathBuf, pids: Option<PathBuf> },
    V2 { parent: PathBuf },
}

impl Hierarchy {
    pub(crate) fn find() -> Result<Hierarchy, String> {
        let mounts = read(Path::new("/proc/self/mountinfo")).map_err(|why| why.to_string())?;
        let own = read(Path::new("/proc/self/cgroup")).map_err(|why| why.to_string())?;
        let hierarchy = if let Some(memory) = own_v1(&mounts, &own, "memory") {
            Hierarchy::V1 { memory, pids: own_v1(&mounts, &own, "pids") }
        } else if let Some(own) = own_v2(&mounts, &own) {
            // A group with processes in it has no groups with limits below, but for the root.
            let hands_on = |path: &&Path| {
                let controllers = read(&path.join("cgroup.subtree_control")).unwrap_or_default();
                ["memory", "pids"]
                    .iter()
                    .all(|name| controllers.split(' ').any(|word| word == *name))
            };
            let parent = own.ancestors().find(hands_on);
            let parent = parent.ok_or("no group above this one hands memory and pids on")?;
            Hierarchy::V2 { parent: parent.to_owned() }
        } else {
            return Err(String::from("no memory control groups are mounted"));
        };
        sweep(&hierarchy);
        match Group::new(&hierarchy, 1 << 30, None) {
            Ok(_) => Ok(hierarchy),
            Err(why) => Err(format!("no group can be made ({hierarchy}): {why}; this takes root")),
        }
    }

    fn folders(&self) -> Vec<&Path> {
        match self {
            Hierarchy::V1 { memory, pids } => {
                std::iter::once(memory.as_path()).chain(pids.as_deref()).collect()
            }
            Hierarchy::V2 { parent } => vec![parent],
        }
    }
}

impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hierarchy::V1 { .. } => f.write_str("cgroup v1"),
            Hierarchy::V2 { .. } => f.write_str("cgroup v2"),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
        .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
}

/// This process's group, by its path in the hierarchy and where that is mounted.
fn own_v1(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let lists = |names: &str| names.split(',').any(|name| name == controller);
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next().filter(|names| lists(names)).and(fields.next())
    })?;
    mounted(mounts, path, |kind, options| kind == "cgroup" && lists(options))
}

fn own_v2(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounted(mounts, path, |kind, _| kind == "cgroup2")
}

fn mounted(mounts: &str, path: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let (mount, kind): (Vec<_>, Vec<_>) =
            (mount.split(' ').collect(), kind.split(' ').collect());
        let (root, point) = (mount.get(3)?, mount.get(4)?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        is_it(kind.first()?, kind.get(2)?).then(|| Path::new(point).join(below))
    })
}

/// A group with a limit, and one of threads if asked for. It goes away with this value.
pub(crate) struct Group {
    /// Of memory first.
    pub(crate) folders: Vec<PathBuf>,
    is_v2: bool,
}

impl Group {
    pub(crate) fn new(
        hierarchy: &Hierarchy,
        limit_bytes: u64,
        threads: Option<u64>,
    ) -> io::Result<Group> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let is_v2 = matches!(hierarchy, Hierarchy::V2 { .. });
        let mut group = Group { folders: Vec::new(), is_v2 };
        for folder in hierarchy.folders() {
            let folder = folder.join(&name);
            fs::create_dir(&folder).map_err(|why| {
                io::Error::new(why.kind(), format!("{}: {why}", folder.display()))
            })?;
            group.folders.push(folder);
        }
        let memory = &group.folders[0];
        if is_v2 {
            write(&memory.join("memory.max"), &limit_bytes.to_string())?;
            // A machine without swap has no such file.
            drop(write(&memory.join("memory.swap.max"), "0"));
        } else {
            write(&memory.join("memory.limit_in_bytes"), &limit_bytes.to_string())?;
            // Memory and swap together; without swap accounting there is no such file.
            drop(write(&memory.join("memory.memsw.limit_in_bytes"), &limit_bytes.to_string()));
        }
        if let Some(threads) = threads {
            let pids = group.folders.last().expect("there is one at least");
            write(&pids.join("pids.max"), &threads.to_string())?;
        }
        Ok(group)
    }

    fn memory(&self, file: &str) -> PathBuf {
        self.folders[0].join(file)
    }

    /// Lowers the limit. Version 1 refuses to as long as more is in use; version 2 kills.
    pub(crate) fn lower(&self, limit_bytes: u64) -> io::Result<()> {
        let file = if self.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match write(&self.memory(file), &limit_bytes.to_string()) {
                Err(why) if why.kind() == io::ErrorKind::ResourceBusy && Instant::now() < until => {
                    thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    /// How many processes the kernel has killed here for want of memory.
    pub(crate) fn kills(&self) -> io::Result<u64> {
        let file = if self.is_v2 { "memory.events" } else { "memory.oom_control" };
        let text = read(&self.memory(file))?;
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|kills| kills.parse().ok()).ok_or_else(|| io::Error::other(text))
    }

    pub(crate) fn peak_bytes(&self) -> io::Result<u64> {
        let file = if self.is_v2 { "memory.peak" } else { "memory.max_usage_in_bytes" };
        let text = read(&self.memory(file))?;
        text.parse().map_err(|_| io::Error::other(text))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            remove(folder);
        }
    }
}

/// A process that was killed is in its group until it is gone for good.
fn remove(folder: &Path) {
    for _ in 0..500 {
        match fs::remove_dir(folder) {
            Err(why) if why.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
    eprintln!("{} could not be removed", folder.display());
}

/// Removes what runs have left that were killed themselves. Their trials have died with them. To
/// be called before this process has made a group: what has its number is another's.
fn sweep(hierarchy: &Hierarchy) {
    for folder in hierarchy.folders() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let owner = rest.split('-').next().unwrap_or_default();
            let is_own_number = owner == std::process::id().to_string();
            if is_own_number || !Path::new("/proc").join(owner).exists() {
                remove(&entry.path());
            }
        }
    }
}
