//! How much processor time the control groups allow. Shares and weights are no limits: they say
//! who goes first when processors are short, and nothing when they are not.

use std::path::Path;

use super::cgroup::{Group, Level, Version};
use super::text;
use crate::fact::Fact;

/// The kernel's own, in microseconds.
const DEFAULT_PERIOD: u64 = 100_000;

/// The least quota, in processors.
pub(crate) fn quota(root: &Path) -> Fact<f64> {
    match Group::of(root, "cpu") {
        Ok(Some(group)) => group.least(|level| match level.version {
            Version::V1 => v1(level),
            Version::V2 => v2(level),
        }),
        Ok(None) => Fact::Unlimited,
        Err(why) => Fact::Unread { why },
    }
}

/// `250000 100000`, or `max` for the first. The second may be absent.
fn v2(level: &Level) -> Result<Fact<f64>, String> {
    let Some((path, found)) = level.read("cpu.max")? else { return Ok(Fact::Unlimited) };
    let words: Vec<&[u8]> = text::words(&found).take(3).collect();
    let (quota, period) = match *words {
        [quota] => (quota, Some(DEFAULT_PERIOD)),
        [quota, period] => (quota, text::number(period)),
        _ => (&found[..0], None),
    };
    let nonsense = || text::nonsense(&path, "a quota and a period", &found);
    let period = period.ok_or_else(nonsense)?;
    let at = path.display().to_string();
    if quota == b"max" {
        processors(None, period, at).ok_or_else(nonsense)
    } else {
        let quota = text::number(quota).ok_or_else(nonsense)?;
        processors(Some(quota), period, at).ok_or_else(nonsense)
    }
}

/// `-1` in the quota's file is none. The period has a file of its own.
fn v1(level: &Level) -> Result<Fact<f64>, String> {
    let Some((path, found)) = level.read("cpu.cfs_quota_us")? else { return Ok(Fact::Unlimited) };
    let word = found.trim_ascii();
    if word == b"-1" {
        return Ok(Fact::Unlimited);
    }
    let quota = text::number(word).filter(|quota| *quota > 0);
    let quota = quota.ok_or_else(|| text::nonsense(&path, "microseconds or -1", &found))?;
    let at = path.display().to_string();
    let Some((path, found)) = level.read("cpu.cfs_period_us")? else {
        return Err(format!("{at}: a quota without cpu.cfs_period_us"));
    };
    let period = text::number(found.trim_ascii());
    period
        .and_then(|period| processors(Some(quota), period, at))
        .ok_or_else(|| text::nonsense(&path, "microseconds", &found))
}

/// Of nothing in some time, or some in no time, no number of processors can be made.
fn processors(quota: Option<u64>, period: u64, at: String) -> Option<Fact<f64>> {
    match quota {
        Some(0) => None,
        _ if period == 0 => None,
        Some(quota) => Some(Fact::Limited { limit: quota as f64 / period as f64, at }),
        None => Some(Fact::Unlimited),
    }
}
