//! How many more threads the control groups allow. To the kernel a thread is a task, and it is
//! tasks that a group's `pids.max` is about.

use std::path::Path;

use super::cgroup::{Group, Level};
use super::text;
use crate::fact::Fact;

/// The least that is left, over all levels.
pub(crate) fn group_threads(root: &Path) -> Fact<u64> {
    match Group::of(root, "pids") {
        Ok(Some(group)) => group.least(left),
        Ok(None) => Fact::Unlimited,
        Err(why) => Fact::Unread { why },
    }
}

/// The highest level is not always the one with the least left, nor is the lowest limit: both
/// numbers count the groups below.
fn left(level: &Level) -> Result<Fact<u64>, String> {
    let Some((path, found)) = level.read("pids.max")? else { return Ok(Fact::Unlimited) };
    if found.trim_ascii() == b"max" {
        return Ok(Fact::Unlimited);
    }
    let most = text::number(found.trim_ascii());
    let most = most.ok_or_else(|| text::nonsense(&path, "a number or \"max\"", &found))?;
    let at = path.display().to_string();
    let Some((path, found)) = level.read("pids.current")? else {
        return Err(format!("{at}: a limit without pids.current"));
    };
    let current = text::number(found.trim_ascii());
    let current = current.ok_or_else(|| text::nonsense(&path, "a number", &found))?;
    // A limit that was lowered, or a process that was moved in, leaves more tasks than allowed.
    let limit = most.saturating_sub(current);
    Ok(Fact::Limited { limit, at: format!("{at}, less {current} in pids.current") })
}
