//! `/proc/self/cgroup`: which control group this process is in, for each hierarchy.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::text::{self, below};

/// The kernel prints no longer path.
const LONGEST_PATH: usize = 4096;

/// Where this process is, as far as one controller is concerned.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// In a group of the controller's own hierarchy (cgroup v1).
    Own(PathBuf),
    /// In a group of the unified hierarchy (cgroup v2).
    Unified(PathBuf),
    /// In none: the kernel has no control groups, or nobody has set up this controller.
    None,
}

impl Membership {
    /// Finds the group. A v1 line that names the controller goes before the v2 line: on a hybrid
    /// system there are both, and the controller is in v1.
    pub(super) fn of(root: &Path, controller: &str) -> Result<Membership, String> {
        let path = below(root, Path::new("/proc/self/cgroup"));
        let found = match text::read(&path) {
            Ok(found) => found,
            Err(failed) if failed.is_missing() => {
                // With a /proc that answers, it is the kernel that has no control groups.
                text::read(&below(root, Path::new("/proc/self/status")))?;
                return Ok(Membership::None);
            }
            Err(failed) => return Err(failed.why),
        };
        Self::parse(&found, controller)
            .map_err(|line| text::nonsense(&path, "the process's control groups", line))
    }

    /// Or gives back the line that makes no sense.
    fn parse<'a>(found: &'a [u8], controller: &str) -> Result<Membership, &'a [u8]> {
        let mut own = None;
        let mut unified = None;
        let mut any = false;
        for line in text::lines(found) {
            let (controllers, group) = fields(line).ok_or(line)?;
            any = true;
            let names = || controllers.split(|byte| *byte == b',');
            let place = if controllers.is_empty() {
                &mut unified
            } else if names().any(|name| name == controller.as_bytes()) {
                &mut own
            } else {
                continue;
            };
            // Nothing is in two groups of one hierarchy.
            if place.replace(group).is_some() {
                return Err(line);
            }
        }
        match (own, unified) {
            (Some(group), _) => Ok(Membership::Own(group)),
            (None, Some(group)) => Ok(Membership::Unified(group)),
            (None, None) if any => Ok(Membership::None),
            (None, None) => Err(found),
        }
    }
}

/// The controllers and the path of a line `4:cpu,cpuacct:/a`. A path may have ':' in it.
fn fields(line: &[u8]) -> Option<(&[u8], PathBuf)> {
    let mut fields = line.splitn(3, |byte| *byte == b':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    text::number(id)?;
    // The number 0 is the unified hierarchy's, and it alone has no controllers to name.
    if controllers.is_empty() != (id == b"0") || !path.starts_with(b"/") {
        return None;
    }
    (path.len() <= LONGEST_PATH).then(|| (controllers, PathBuf::from(OsStr::from_bytes(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(text: &str) -> Option<Membership> {
        Membership::parse(text.as_bytes(), "memory").ok()
    }

    #[test]
    fn a_line_that_names_the_controller_goes_before_the_unified_one() {
        let own = Membership::Own(PathBuf::from("/a"));
        assert_eq!(memory("0::/b\n4:hugetlb,memory:/a\n").as_ref(), Some(&own));
        assert_eq!(memory("4:memory:/a\n0::/b\n").as_ref(), Some(&own));
    }

    #[test]
    fn controllers_are_named_exactly() {
        let unified = Membership::Unified(PathBuf::from("/b"));
        let text = "4:memory2,xmemory:/a\n3:name=memory:/a\n0::/b\n";
        assert_eq!(memory(text).as_ref(), Some(&unified));
    }

    #[test]
    fn a_path_goes_on_behind_a_colon() {
        let text = "0::/a:cri-containerd:b c\n";
        assert_eq!(memory(text), Some(Membership::Unified(PathBuf::from("/a:cri-containerd:b c"))));
    }

    #[test]
    fn what_is_not_a_list_of_groups_is_refused() {
        for text in ["", "\n", "x", "0::", "0::a", "0:memory:/a", "4::/a", "a:memory:/", "0::/\nx"]
        {
            assert_eq!(memory(text), None, "{text:?}");
        }
        assert_eq!(memory("0::/a\n0::/b\n"), None);
        assert_eq!(memory("4:memory:/a\n5:memory:/b\n"), None);
        assert_eq!(memory(&format!("0::/{}", "a/".repeat(4096))), None);
    }

    #[test]
    fn a_controller_in_no_hierarchy_limits_nothing() {
        assert_eq!(memory("1:name=systemd:/a\n"), Some(Membership::None));
    }
}
