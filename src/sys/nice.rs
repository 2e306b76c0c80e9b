//! The priority of threads beyond those that a machine needs to be busy.

/// Gives the calling thread a low priority, as far as the system lets it. Never raises it: who
/// started the program at nice 15 meant that.
#[cfg(all(target_os = "linux", not(admit_shuttle)))]
pub(crate) fn lower_this_thread() {
    /// The study's value: beside a thread of nice 0 one of nice 10 gets about a tenth of the
    /// processor.
    const LOW: i32 = 10;
    // SAFETY: the three calls take numbers and change nothing but the scheduling of the thread
    // with this id, which is the calling one. `getpriority` fails only for threads that do not
    // exist, so that what it returns is a value. A failure to set it is what best effort means.
    unsafe {
        let thread = libc::gettid() as libc::id_t;
        if libc::getpriority(libc::PRIO_PROCESS, thread) < LOW {
            libc::setpriority(libc::PRIO_PROCESS, thread, LOW);
        }
    }
}

/// Elsewhere a nice value is the whole process's. (Shuttle runs many threads on one.)
#[cfg(any(not(target_os = "linux"), admit_shuttle))]
pub(crate) fn lower_this_thread() {}
