//! macOS: no control groups, and calls instead of files, so that the root is ignored.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::path::Path;
use std::thread;

use crate::fact::Fact;

/// There are no groups of processes with a limit of their own.
pub(crate) fn group_memory(_root: &Path) -> (Fact<u64>, Fact<u64>) {
    (Fact::Unlimited, Fact::Unlimited)
}

pub(crate) fn physical(_root: &Path) -> Fact<u64> {
    const NAME: &CStr = c"hw.memsize";
    let mut bytes = 0_u64;
    let mut size = size_of::<u64>();
    // SAFETY: the name ends with a null, and the call writes at most `size` bytes to `bytes`, which
    // has that many and may hold any. Nothing is set: the last two are null and 0.
    let code = unsafe {
        libc::sysctlbyname(
            NAME.as_ptr(),
            (&raw mut bytes).cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if code == 0 && size == size_of::<u64>() && bytes > 0 {
        Fact::Limited { limit: bytes, at: String::from("hw.memsize") }
    } else {
        Fact::Unread { why: format!("hw.memsize: {}", io::Error::last_os_error()) }
    }
}

pub(crate) fn address_space(_root: &Path) -> Fact<u64> {
    soft_limit(libc::RLIMIT_AS, "RLIMIT_AS")
}

pub(crate) fn data(_root: &Path) -> Fact<u64> {
    soft_limit(libc::RLIMIT_DATA, "RLIMIT_DATA")
}

fn soft_limit(which: libc::c_int, name: &str) -> Fact<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to an rlimit that lives through the call, which only writes to it.
    let code = unsafe { libc::getrlimit(which, &raw mut limit) };
    if code != 0 {
        Fact::Unread { why: format!("{name}: {}", io::Error::last_os_error()) }
    } else if limit.rlim_cur >= libc::RLIM_INFINITY {
        Fact::Unlimited
    } else {
        Fact::Limited { limit: limit.rlim_cur, at: name.to_owned() }
    }
}

/// The bytes that are mapped and those that are resident.
pub(crate) fn in_use(_root: &Path) -> (Option<u64>, Option<u64>) {
    let Ok(id) = libc::c_int::try_from(std::process::id()) else { return (None, None) };
    let Ok(size) = libc::c_int::try_from(size_of::<libc::proc_taskinfo>()) else {
        return (None, None);
    };
    // SAFETY: the struct consists of integers, for which zeros are a value.
    let mut info: libc::proc_taskinfo = unsafe { mem::zeroed() };
    // SAFETY: the call writes at most `size` bytes to `info`, which has that many.
    let written =
        unsafe { libc::proc_pidinfo(id, libc::PROC_PIDTASKINFO, 0, (&raw mut info).cast(), size) };
    if written == size {
        (Some(info.pti_virtual_size), Some(info.pti_resident_size))
    } else {
        (None, None)
    }
}

/// A process cannot be kept from any processor.
pub(crate) fn allowed(_root: &Path) -> Option<usize> {
    thread::available_parallelism().map(usize::from).ok()
}

pub(crate) fn quota(_root: &Path) -> Fact<f64> {
    Fact::Unlimited
}

pub(crate) fn group_threads(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}

/// `RLIMIT_NPROC` counts processes here, and no threads.
pub(crate) fn user_threads(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}
