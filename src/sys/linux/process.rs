//! What `/proc` says of one process: its limits, its sizes, its user.

use std::path::{Path, PathBuf};

use super::text::{self, Failed, below};
use crate::fact::Fact;

/// `RLIMIT_AS`.
pub(crate) fn address_space(root: &Path) -> Fact<u64> {
    soft_limit(root, "Max address space", "RLIMIT_AS")
}

/// `RLIMIT_DATA`.
pub(crate) fn data(root: &Path) -> Fact<u64> {
    soft_limit(root, "Max data size", "RLIMIT_DATA")
}

/// The bytes that are mapped and those that are resident.
pub(crate) fn in_use(root: &Path) -> (Option<u64>, Option<u64>) {
    let Ok(status) = Status::own(root) else { return (None, None) };
    (status.kibibytes("VmSize:"), status.kibibytes("VmRSS:"))
}

/// The number of processors in `Cpus_allowed_list`.
pub(crate) fn allowed(root: &Path) -> Option<usize> {
    count(Status::own(root).ok()?.field("Cpus_allowed_list:")?)
}

/// Of a list `0-3,8,10-11`, which is in order.
fn count(list: &[u8]) -> Option<usize> {
    let mut processors = 0_u64;
    let mut next = 0_u64;
    for range in list.trim_ascii().split(|byte| *byte == b',') {
        let mut ends = range.splitn(2, |byte| *byte == b'-');
        let first = text::number(ends.next()?)?;
        let last = ends.next().map_or(Some(first), text::number)?;
        if first < next || last < first {
            return None;
        }
        next = last.checked_add(1)?;
        processors += next - first;
    }
    usize::try_from(processors).ok()
}

/// The soft limit in one line of `/proc/self/limits`:
///
/// ```text
/// Max address space         unlimited            unlimited            bytes
/// ```
pub(super) fn soft_limit(root: &Path, name: &str, at: &str) -> Fact<u64> {
    let path = below(root, Path::new("/proc/self/limits"));
    let found = match text::read(&path) {
        Ok(found) => found,
        Err(failed) => return Fact::Unread { why: failed.why },
    };
    let soft = text::lines(&found).find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?;
        let starts = rest.first().is_some_and(u8::is_ascii_whitespace);
        if starts { text::words(rest).next() } else { None }
    });
    match soft {
        Some(b"unlimited") => Fact::Unlimited,
        Some(word) => match text::number(word) {
            Some(limit) => Fact::Limited { limit, at: at.to_owned() },
            None => Fact::Unread { why: text::nonsense(&path, name, word) },
        },
        None => Fact::Unread { why: text::nonsense(&path, name, &found) },
    }
}

/// The file `status` of a process.
#[derive(Debug)]
pub(super) struct Status {
    path: PathBuf,
    text: Vec<u8>,
}

impl Status {
    /// This process's own.
    pub(super) fn own(root: &Path) -> Result<Status, Failed> {
        Status::read(&below(root, Path::new("/proc/self")))
    }

    /// That of the process with this directory.
    pub(super) fn read(directory: &Path) -> Result<Status, Failed> {
        let path = directory.join("status");
        let text = text::read(&path)?;
        Ok(Status { path, text })
    }

    /// What follows a name with its colon.
    fn field(&self, name: &str) -> Option<&[u8]> {
        text::lines(&self.text).find_map(|line| line.strip_prefix(name.as_bytes()))
    }

    fn kibibytes(&self, name: &str) -> Option<u64> {
        text::lines(&self.text).find_map(|line| text::kibibytes(line, name))
    }

    fn wanted<T>(&self, name: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| text::nonsense(&self.path, name, &self.text))
    }

    /// The real user. (The effective one, which may be another, starts no threads.)
    pub(super) fn real_user(&self) -> Result<u64, String> {
        let first = self.field("Uid:").and_then(|ids| text::words(ids).next());
        self.wanted("Uid", first.and_then(text::number))
    }

    pub(super) fn threads(&self) -> Result<u64, String> {
        let threads = self.field("Threads:").map(<[u8]>::trim_ascii);
        self.wanted("Threads", threads.and_then(text::number))
    }

    /// The effective capabilities, one bit each.
    pub(super) fn capabilities(&self) -> Result<u64, String> {
        let digits = self.field("CapEff:").map(<[u8]>::trim_ascii);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        self.wanted("CapEff", digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_in_ranges() {
        let cases = [("0", 1), ("0-1", 2), ("3,5-7,9\n", 5), ("0-1023,2048", 1025), ("\t4", 1)];
        for (list, processors) in cases {
            assert_eq!(count(list.as_bytes()), Some(processors), "{list}");
        }
        let most = u64::MAX.to_string();
        for list in ["", ",", "1-", "-1", "2-1", "1,1", "0-3,2", "a", "0-1:1/2", &most] {
            assert_eq!(count(list.as_bytes()), None, "{list}");
        }
    }
}
