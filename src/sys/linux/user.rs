//! How many more threads `RLIMIT_NPROC` allows. It counts the threads of a real user in all of
//! their processes, so those have to be counted here too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::process::{Status, soft_limit};
use super::text::{self, below};
use crate::fact::Fact;

const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_RESOURCE: u64 = 1 << 24;
/// The kernel's `PROC_USER_INIT_INO`, a fixed number (include/linux/proc_ns.h).
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

/// What the limit leaves. Threads in processes that cannot be seen from here (of another PID
/// namespace, or hidden by how /proc is mounted) count for the kernel and are not counted here.
pub(crate) fn user_threads(root: &Path) -> Fact<u64> {
    match soft_limit(root, "Max processes", "RLIMIT_NPROC") {
        Fact::Limited { limit, at } => Fact::or_unread(left(root, limit, &at)),
        fact => fact,
    }
}

fn left(root: &Path, most: u64, at: &str) -> Result<Fact<u64>, String> {
    let own = Status::own(root)?;
    let user = own.real_user()?;
    let exempt = user == 0 || own.capabilities()? & (CAP_SYS_ADMIN | CAP_SYS_RESOURCE) != 0;
    if exempt && is_in_initial_namespace(root)? {
        return Ok(Fact::Unlimited);
    }
    let threads = threads_of(user, &below(root, Path::new("/proc")))?;
    let at = format!("{at}, less {threads} threads of user {user}");
    Ok(Fact::Limited { limit: most.saturating_sub(threads), at })
}

/// Whether user 0 is the machine's, and capabilities hold for the machine. In another user
/// namespace neither exempts from the limit, also in one that maps every user to itself.
fn is_in_initial_namespace(root: &Path) -> Result<bool, String> {
    let path = below(root, Path::new("/proc/self/ns/user"));
    match fs::read_link(&path) {
        Ok(found) => Ok(found.as_os_str() == INITIAL_USER_NAMESPACE),
        // A kernel without user namespaces has one: the initial.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn threads_of(user: u64, proc: &Path) -> Result<u64, String> {
    let failed = |error| format!("{}: {error}", proc.display());
    let mut threads = 0_u64;
    for entry in fs::read_dir(proc).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if text::number(entry.file_name().as_encoded_bytes()).is_some() {
            threads = threads.saturating_add(threads_if_of(user, entry.path())?);
        }
    }
    Ok(threads)
}

fn threads_if_of(user: u64, directory: PathBuf) -> Result<u64, String> {
    match Status::read(&directory) {
        Ok(status) if status.real_user()? == user => status.threads(),
        Ok(_) => Ok(0),
        // It ended while the others were counted, or it is not to be seen: another user's.
        Err(failed) if failed.is_gone() || failed.is_denied() => Ok(0),
        Err(failed) => Err(failed.why),
    }
}
