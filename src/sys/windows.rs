//! Windows: the job object is the control group. There are calls instead of files, so that the
//! root is ignored.
//!
//! A process may be in several jobs, one within the other. Only the innermost can be asked about
//! without its handle; what the others allow cannot be found out.

use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::ptr;

use windows_sys::Win32::System::JobObjects::{
    IsProcessInJob, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE, JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
    JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE, JOB_OBJECT_LIMIT_JOB_MEMORY,
    JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOBOBJECT_CPU_RATE_CONTROL_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS, JobObjectCpuRateControlInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess,
};

use crate::fact::Fact;

/// A job limits committed memory, that of the process or that of all its processes together.
/// Allocations fail at the limit; nothing slows them down before it.
pub(crate) fn group_memory(_root: &Path) -> (Fact<u64>, Fact<u64>) {
    (Fact::or_unread(job_memory()), Fact::Unlimited)
}

fn job_memory() -> Result<Fact<u64>, String> {
    let mut info = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    if !is_in_job()? {
        return Ok(Fact::Unlimited);
    }
    ask_job(JobObjectExtendedLimitInformation, &mut info)?;
    let set = info.BasicLimitInformation.LimitFlags;
    let limit = |flag, bytes: usize, name: &str| {
        if set & flag == 0 {
            Fact::Unlimited
        } else {
            Fact::Limited { limit: bytes as u64, at: format!("job object, {name}") }
        }
    };
    Ok(Fact::least([
        limit(JOB_OBJECT_LIMIT_PROCESS_MEMORY, info.ProcessMemoryLimit, "ProcessMemoryLimit"),
        limit(JOB_OBJECT_LIMIT_JOB_MEMORY, info.JobMemoryLimit, "JobMemoryLimit"),
    ]))
}

fn is_in_job() -> Result<bool, String> {
    let mut is_in = 0;
    // SAFETY: the handle is the one that always means this process, no job in particular is named,
    // and the pointer is to a BOOL that lives through the call.
    let done = unsafe { IsProcessInJob(GetCurrentProcess(), ptr::null_mut(), &raw mut is_in) };
    if done == 0 { Err(failed("IsProcessInJob")) } else { Ok(is_in != 0) }
}

/// Types that `QueryInformationJobObject` fills in.
trait Answer {}
impl Answer for JOBOBJECT_EXTENDED_LIMIT_INFORMATION {}
impl Answer for JOBOBJECT_CPU_RATE_CONTROL_INFORMATION {}

/// Asks the job that this process is in. The class must be that of the answer's type.
fn ask_job<T: Answer>(class: JOBOBJECTINFOCLASS, answer: &mut T) -> Result<(), String> {
    let size = u32::try_from(size_of::<T>()).map_err(|error| error.to_string())?;
    let answer: *mut c_void = ptr::from_mut(answer).cast();
    // SAFETY: no handle means the job of this process. The call writes at most `size` bytes to the
    // answer, which has that many; both types consist of integers and so may hold any.
    let done =
        unsafe { QueryInformationJobObject(ptr::null_mut(), class, answer, size, ptr::null_mut()) };
    if done == 0 { Err(failed("QueryInformationJobObject")) } else { Ok(()) }
}

fn failed(call: &str) -> String {
    format!("{call}: {}", io::Error::last_os_error())
}

pub(crate) fn physical(_root: &Path) -> Fact<u64> {
    let size = u32::try_from(size_of::<MEMORYSTATUSEX>()).unwrap_or(0);
    let mut status = MEMORYSTATUSEX { dwLength: size, ..MEMORYSTATUSEX::default() };
    // SAFETY: the pointer is to a struct that lives through the call and says how long it is.
    let done = unsafe { GlobalMemoryStatusEx(&raw mut status) };
    if done == 0 || status.ullTotalPhys == 0 {
        Fact::Unread { why: failed("GlobalMemoryStatusEx") }
    } else {
        Fact::Limited { limit: status.ullTotalPhys, at: String::from("GlobalMemoryStatusEx") }
    }
}

/// There are no such limits.
pub(crate) fn address_space(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}

pub(crate) fn data(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}

/// Of the bytes that are mapped nothing is known; the second are those that are resident.
pub(crate) fn in_use(_root: &Path) -> (Option<u64>, Option<u64>) {
    let size = u32::try_from(size_of::<PROCESS_MEMORY_COUNTERS>()).unwrap_or(0);
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: size, ..PROCESS_MEMORY_COUNTERS::default() };
    // SAFETY: the handle is the one that always means this process. The call writes at most `size`
    // bytes to the counters, which have that many.
    let done = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, size) };
    (None, (done != 0).then_some(counters.WorkingSetSize as u64))
}

/// Affinity is not asked: it would be that of one processor group.
pub(crate) fn allowed(_root: &Path) -> Option<usize> {
    None
}

/// The job's hard cap, in hundredths of a percent of all processors. A weight is no limit.
pub(crate) fn quota(_root: &Path) -> Fact<f64> {
    Fact::or_unread(job_quota())
}

fn job_quota() -> Result<Fact<f64>, String> {
    let mut info = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default();
    if !is_in_job()? {
        return Ok(Fact::Unlimited);
    }
    ask_job(JobObjectCpuRateControlInformation, &mut info)?;
    let has = |flag| info.ControlFlags & flag != 0;
    let rate = if !has(JOB_OBJECT_CPU_RATE_CONTROL_ENABLE) {
        return Ok(Fact::Unlimited);
    } else if has(JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE) {
        // SAFETY: the flag says that it is this member which is set; it consists of integers.
        u32::from(unsafe { info.Anonymous.Anonymous.MaxRate })
    } else if has(JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP) {
        // SAFETY: the flag says that it is this member which is set; it is an integer.
        unsafe { info.Anonymous.CpuRate }
    } else {
        return Ok(Fact::Unlimited);
    };
    // SAFETY: the call has no preconditions.
    let processors = unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) };
    if rate == 0 || processors == 0 {
        return Err(format!(
            "job object: {rate} hundredths of a percent of {processors} processors"
        ));
    }
    let limit = f64::from(rate) / 10_000.0 * f64::from(processors);
    Ok(Fact::Limited { limit, at: String::from("job object, CpuRate") })
}

/// A job limits processes, not threads.
pub(crate) fn group_threads(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}

pub(crate) fn user_threads(_root: &Path) -> Fact<u64> {
    Fact::Unlimited
}
