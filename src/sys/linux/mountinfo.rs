//! `/proc/self/mountinfo`: where file systems are mounted, and what of them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::text::{self, below};

/// One line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    id: u64,
    parent: u64,
    /// The directory of the file system that is seen at the mount point.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
    kind: Vec<u8>,
    /// What the file system was mounted with. For cgroup v1 its controllers are among them.
    options: Vec<u8>,
}

impl Mount {
    /// Of a line `36 35 0:33 /a /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory`.
    /// There may be any number of fields before the '-', and spaces in what comes last.
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = text::number(fields.next()?)?;
        let parent = text::number(fields.next()?)?;
        let _device = fields.next()?;
        let root = path(fields.next()?)?;
        let point = path(fields.next()?)?;
        let _options = fields.next()?;
        fields.find(|field| *field == b"-")?;
        let kind = fields.next()?.to_vec();
        let _source = fields.next()?;
        let options = fields.collect::<Vec<_>>().join(&b' ');
        Some(Mount { id, parent, root, point, kind, options })
    }

    /// Whether it shows the unified hierarchy.
    pub(super) fn is_unified(&self) -> bool {
        self.kind == b"cgroup2"
    }

    /// Whether it shows the controller's own hierarchy.
    pub(super) fn is_of(&self, controller: &str) -> bool {
        let mut options = self.options.split(|byte| *byte == b',');
        self.kind == b"cgroup" && options.any(|option| option == controller.as_bytes())
    }
}

/// A path in which the kernel has written space, tab, newline and backslash as `\` and three
/// octal digits.
fn path(field: &[u8]) -> Option<PathBuf> {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [byte, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                path.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                path.push(*byte);
                rest = tail;
            }
        }
    }
    let path = PathBuf::from(OsString::from_vec(path));
    path.is_absolute().then_some(path)
}

/// All mounts that this process can see.
#[derive(Debug)]
pub(super) struct Mounts {
    mounts: Vec<Mount>,
    /// The mounts on each mount, by its id. Those on none that is listed are at `None`: the root,
    /// or in a changed root all that are directly below it.
    on: HashMap<Option<u64>, Vec<usize>>,
}

impl Mounts {
    pub(super) fn read(root: &Path) -> Result<Mounts, String> {
        let found = text::read(&below(root, Path::new("/proc/self/mountinfo")))?;
        Ok(Self::parse(&found))
    }

    /// A line that makes no sense is left out: without mounts nothing is taken for unlimited.
    fn parse(found: &[u8]) -> Mounts {
        let mounts: Vec<Mount> = text::lines(found).filter_map(Mount::parse).collect();
        let ids: HashSet<u64> = mounts.iter().map(|mount| mount.id).collect();
        let mut on: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, mount) in mounts.iter().enumerate() {
            let listed = ids.contains(&mount.parent) && mount.parent != mount.id;
            on.entry(listed.then_some(mount.parent)).or_default().push(at);
        }
        Mounts { mounts, on }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// Whether its mount point leads to this mount, or another one is mounted over it: at the
    /// same point, or at a directory on the way.
    pub(super) fn leads_to(&self, mount: &Mount) -> bool {
        let mut reached: Option<&Mount> = None;
        // Each step enters the next mount on the way. More steps than mounts would be a circle.
        for _ in 0..=self.mounts.len() {
            let here = self.on.get(&reached.map(|mount| mount.id)).into_iter().flatten();
            // The one that comes first on the way, and of those at one point the last mounted.
            let next = here
                .filter(|at| mount.point.starts_with(&self.mounts[**at].point))
                .min_by_key(|at| (self.mounts[**at].point.as_os_str().len(), Reverse(**at)));
            match next {
                Some(at) => reached = Some(&self.mounts[*at]),
                None => break,
            }
        }
        reached.is_some_and(|reached| std::ptr::eq(reached, mount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(line: &str) -> Mount {
        Mount::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn fields_vary_in_number_and_the_last_may_have_spaces() {
        for optional in ["", "shared:9 ", "shared:9 master:3 unbindable "] {
            let line =
                format!("36 35 0:33 /r /p rw {optional}- cgroup cgroup rw,x=a - b,cpu,cpuacct");
            let mount = mount(&line);
            assert_eq!((&*mount.root, &*mount.point), (Path::new("/r"), Path::new("/p")));
            assert!(mount.is_of("cpu") && mount.is_of("cpuacct") && !mount.is_of("cpua"));
            assert!(!mount.is_unified());
        }
        assert!(mount("1 1 0:1 / /p rw - cgroup2  rw,memory").is_unified());
        assert!(!mount("1 1 0:1 / /p rw - cgroup2  rw,memory").is_of("memory"));
    }

    #[test]
    fn escapes_are_octal() {
        let mount = mount(r"1 1 0:1 /a\134b /\040\011\012\134040\9\07 rw - cgroup2 - rw");
        assert_eq!(mount.root, Path::new(r"/a\b"));
        assert_eq!(mount.point, Path::new("/ \t\n\\040\\9\\07"));
    }

    #[test]
    fn a_cut_line_is_no_mount() {
        let line = "36 35 0:33 / /p rw shared:9 - cgroup2 none rw";
        let shortest = line.find(" none").unwrap();
        for end in 0..=shortest {
            assert_eq!(Mount::parse(&line.as_bytes()[..end]), None, "{}", &line[..end]);
        }
    }

    /// The ids of those that can be reached.
    fn reached(text: &str) -> Vec<u64> {
        let mounts = Mounts::parse(text.as_bytes());
        mounts.iter().filter(|mount| mounts.leads_to(mount)).map(|mount| mount.id).collect()
    }

    #[test]
    fn a_mount_at_the_same_point_or_above_it_hides_what_is_below() {
        let root = "1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /s rw - tmpfs a rw\n";
        assert_eq!(reached(&format!("{root}3 2 0:3 / /s/m rw - tmpfs a rw")), [1, 2, 3]);
        assert_eq!(
            reached(&format!(
                "{root}3 2 0:3 / /s/m rw - tmpfs a rw\n4 3 0:4 / /s/m rw - tmpfs a rw"
            )),
            [1, 2, 4],
        );
        assert_eq!(
            reached(&format!(
                "{root}3 2 0:3 / /s/m rw - tmpfs a rw\n4 2 0:4 / /s rw - tmpfs a rw\n\
                 5 4 0:3 / /s/ma rw - tmpfs a rw"
            )),
            [1, 4, 5],
        );
    }

    #[test]
    fn in_a_changed_root_the_first_mounts_are_on_none_that_is_listed() {
        assert_eq!(reached("7 3 0:1 / /proc rw - proc a rw\n8 3 0:2 / /c rw - tmpfs a rw"), [7, 8]);
        // Two at one point: the last is on top.
        assert_eq!(reached("9 3 0:1 / /c rw - tmpfs a rw\n8 3 0:2 / /c rw - tmpfs a rw"), [8]);
        assert_eq!(reached("7 7 0:1 / / rw - proc a rw\n8 7 0:2 / /c rw - tmpfs a rw"), [7, 8]);
    }

    #[test]
    fn mounts_in_a_circle_lead_nowhere() {
        assert_eq!(reached("1 2 0:1 / /a rw - x a rw\n2 1 0:1 / /a rw - x a rw"), [0_u64; 0]);
    }
}
