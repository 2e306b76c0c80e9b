//! The memory of the machine, and what the control groups leave of it.

use std::path::Path;

use super::cgroup::{Group, Level, Version};
use super::text::{self, below};
use crate::fact::Fact;

/// cgroup v1 writes "no limit" as the greatest `i64`, rounded down to whole pages. A page has 4,
/// 16 or 64 KiB, so that anything from here on is no limit.
const V1_NONE: u64 = i64::MAX as u64 / 65_536 * 65_536;

/// The least limit at which the kernel kills, and the least above which it slows down.
pub(crate) fn group_memory(root: &Path) -> (Fact<u64>, Fact<u64>) {
    match Group::of(root, "memory") {
        Ok(Some(group)) => match group.version {
            // v1's soft limit only says whose memory is taken first when the machine runs short.
            Version::V1 => (group.least(v1_limit), Fact::Unlimited),
            Version::V2 => (
                group.least(|level| v2(level, "memory.max")),
                group.least(|level| v2(level, "memory.high")),
            ),
        },
        Ok(None) => (Fact::Unlimited, Fact::Unlimited),
        Err(why) => (Fact::Unread { why: why.clone() }, Fact::Unread { why }),
    }
}

fn v2(level: &Level, file: &str) -> Result<Fact<u64>, String> {
    let Some((path, found)) = level.read(file)? else { return Ok(Fact::Unlimited) };
    if found.trim_ascii() == b"max" {
        return Ok(Fact::Unlimited);
    }
    let limit = text::number(found.trim_ascii());
    let limit = limit.ok_or_else(|| text::nonsense(&path, "bytes or \"max\"", &found))?;
    Ok(Fact::Limited { limit, at: path.display().to_string() })
}

fn v1_limit(level: &Level) -> Result<Fact<u64>, String> {
    let Some((path, found)) = level.read("memory.limit_in_bytes")? else {
        return Ok(Fact::Unlimited);
    };
    let own = text::number(found.trim_ascii());
    let own = v1(own.ok_or_else(|| text::nonsense(&path, "bytes", &found))?, &path, "");
    if !level.is_own {
        return Ok(own);
    }
    // The one limit of v1 that is told across namespaces: the least of all groups above, also of
    // those that cannot be seen from here.
    let Some((path, found)) = level.read("memory.stat")? else {
        return Err(format!("{}: a limit without memory.stat", path.display()));
    };
    let name: &[u8] = b"hierarchical_memory_limit";
    let all = text::lines(&found).find_map(|line| {
        let mut words = text::words(line);
        (words.next() == Some(name)).then(|| words.next().and_then(text::number)).flatten()
    });
    let all = all.ok_or_else(|| text::nonsense(&path, "hierarchical_memory_limit", &found))?;
    Ok(Fact::least([own, v1(all, &path, ", hierarchical_memory_limit")]))
}

fn v1(limit: u64, path: &Path, what: &str) -> Fact<u64> {
    if limit >= V1_NONE {
        Fact::Unlimited
    } else {
        Fact::Limited { limit, at: format!("{}{what}", path.display()) }
    }
}

/// `MemTotal`.
pub(crate) fn physical(root: &Path) -> Fact<u64> {
    Fact::or_unread(total(&below(root, Path::new("/proc/meminfo"))))
}

fn total(path: &Path) -> Result<Fact<u64>, String> {
    let found = text::read(path)?;
    let bytes = text::lines(&found).find_map(|line| text::kibibytes(line, "MemTotal:"));
    // No machine runs without memory.
    let limit = bytes.filter(|bytes| *bytes > 0);
    let limit = limit.ok_or_else(|| text::nonsense(path, "MemTotal", &found))?;
    Ok(Fact::Limited { limit, at: format!("{}, MemTotal", path.display()) })
}
