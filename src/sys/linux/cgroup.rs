//! The directories of this process's control groups, from its own up to the mount point.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::membership::Membership;
use super::mountinfo::{Mount, Mounts};
use super::text::{self, Failed, below};
use crate::fact::Fact;

/// So many mounts that show the group are tried.
const MOST_VIEWS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// The group that a controller has this process in, with those above it that any mount shows.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) version: Version,
    /// The highest first: of limits that are equal it is the one to be named, since raising one
    /// below it would change nothing. For each group the directories that show it, those of the
    /// closest mount first.
    lineage: Vec<Vec<Level>>,
}

/// One directory of a group.
#[derive(Debug)]
pub(super) struct Level {
    controller: &'static str,
    pub(super) version: Version,
    directory: PathBuf,
    /// It is the process's own group.
    pub(super) is_own: bool,
    is_mount_point: bool,
}

impl Group {
    /// Finds the group. `None`: the controller limits nobody here.
    pub(super) fn of(root: &Path, controller: &'static str) -> Result<Option<Group>, String> {
        let (version, path) = match Membership::of(root, controller)? {
            Membership::None => return Ok(None),
            Membership::Own(path) => (Version::V1, path),
            Membership::Unified(path) => (Version::V2, path),
        };
        let mounts = Mounts::read(root)?;
        let shows = |mount: &&Mount| match version {
            Version::V1 => mount.is_of(controller),
            Version::V2 => mount.is_unified(),
        };
        let mut views = Vec::new();
        let mut refused = None;
        for mount in mounts.iter().filter(shows) {
            match way(&mounts, mount, &path) {
                Ok(way) => views.push((mount, way)),
                Err(why) => refused = Some(why),
            }
            if views.len() == MOST_VIEWS {
                break;
            }
        }
        if views.is_empty() {
            let why = refused.unwrap_or_else(|| match version {
                Version::V1 => format!("the {controller} hierarchy is not mounted"),
                Version::V2 => String::from("cgroup2 is not mounted"),
            });
            return Err(format!("/proc/self/mountinfo: group {}: {why}", path.display()));
        }
        // The sort is stable, and mounts are in order of mounting.
        views.sort_by_key(|(mount, _)| Reverse(mount.root.components().count()));
        let mut groups = BTreeMap::<(usize, PathBuf), Vec<Level>>::new();
        for (mount, way) in &views {
            let point = below(root, &mount.point);
            for (steps, way) in way.ancestors().enumerate() {
                let group = mount.root.join(way);
                let level = Level {
                    controller,
                    version,
                    directory: point.join(way),
                    is_own: steps == 0,
                    is_mount_point: way.as_os_str().is_empty(),
                };
                groups.entry((group.components().count(), group)).or_default().push(level);
            }
        }
        Ok(Some(Group { version, lineage: groups.into_values().collect() }))
    }

    /// The least of what is read of each group. A group that one mount shows and another does not
    /// counts: a mount of the own group alone does not lift the limits above it. A directory may
    /// be there and yet be of no use, if it may not be entered; then another that shows the same
    /// group will do.
    pub(super) fn least<T: Copy + PartialOrd>(
        &self,
        read: impl Fn(&Level) -> Result<Fact<T>, String>,
    ) -> Fact<T> {
        let fact = |directories: &Vec<Level>| {
            let mut facts = directories.iter().map(|level| Fact::or_unread(read(level)));
            let first = facts.next().unwrap_or(Fact::Unlimited);
            if !matches!(first, Fact::Unread { .. }) {
                return first;
            }
            facts.find(|fact| !matches!(fact, Fact::Unread { .. })).unwrap_or(first)
        };
        Fact::least(self.lineage.iter().map(fact))
    }
}

impl Level {
    /// Reads one of the controller's files. `None`: there is none, and none is needed, so that
    /// the level has no limit of its own.
    pub(super) fn read(&self, file: &str) -> Result<Option<(PathBuf, Vec<u8>)>, String> {
        let path = self.directory.join(file);
        match text::read(&path) {
            Ok(found) => Ok(Some((path, found))),
            Err(failed) if failed.is_missing() => self.may_lack(failed).map(|()| None),
            Err(failed) => Err(failed.why),
        }
    }

    fn may_lack(&self, failed: Failed) -> Result<(), String> {
        let controllers = self.directory.join("cgroup.controllers");
        match self.version {
            // A controller that the group's parent has not enabled for it has no files in it. At
            // the mount point it may be the root of all groups, which has no limits either.
            Version::V2 => {
                let Ok(found) = text::read(&controllers) else { return Err(failed.why) };
                let is_name =
                    |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
                if !text::words(&found).all(|word| word.iter().all(is_name)) {
                    return Err(text::nonsense(&controllers, "names of controllers", &found));
                }
                let enabled = text::words(&found).any(|name| name == self.controller.as_bytes());
                if enabled && !self.is_mount_point { Err(failed.why) } else { Ok(()) }
            }
            // The root of all groups again, provided that this is a directory of v1 groups and
            // not one that something else was mounted on.
            Version::V1 => {
                let is_there = |file| self.directory.join(file).exists();
                let is_v1 = is_there("cgroup.procs") && !is_there("cgroup.controllers");
                if self.is_mount_point && is_v1 { Ok(()) } else { Err(failed.why) }
            }
        }
    }
}

/// The way from a mount's point to the group at `path`.
fn way(mounts: &Mounts, mount: &Mount, path: &Path) -> Result<PathBuf, String> {
    let point = mount.point.display();
    // Seen from within a cgroup namespace, the parts of groups that are outside read "..": the
    // group /../x is one beside the namespace's own root, and a mount of /.. shows its parent.
    // They match as they are; a '..' that is left over is one whose name is not known.
    let climbs = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    let Ok(way) = path.strip_prefix(&mount.root) else {
        let root = mount.root.display();
        return Err(if climbs(&mount.root) {
            format!("{point} shows {root}, and the way from outside the cgroup namespace is hidden")
        } else {
            format!("{point} shows only what is below {root}")
        });
    };
    if climbs(way) {
        return Err(format!("{point} does not show it, it is outside the cgroup namespace"));
    }
    if climbs(&mount.point) {
        return Err(format!("{point} is no path from the root"));
    }
    if !mounts.leads_to(mount) {
        return Err(format!("{point} is covered by another mount"));
    }
    Ok(way.to_owned())
}
