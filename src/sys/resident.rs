//! How much memory of the process is resident.

/// In bytes; `None` where there is no way to ask, or it failed.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: the call takes a number and returns one. Every system has a page size.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page_bytes).ok()?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<u64> {
    super::machine::in_use(std::path::Path::new("/")).1
}
