//! Linux: files below `/proc` and the mount points of control groups.
//!
//! Every absolute path, also one found in a file, is taken below a root, so that a directory tree
//! can stand for a machine. One rule holds everywhere: what could not be read is never taken for
//! no limit. What is not covered: limits of groups that the process cannot see (those above a
//! cgroup namespace, except through v1's `hierarchical_memory_limit`), limits on swap, threads in
//! other groups than the process's first, and a group that the process is moved to later. On a
//! kernel built without CPU quotas the quota is unread, for want of its file.

mod text;
mod membership;
mod mountinfo;
mod cgroup;
mod memory;
mod quota;
mod tasks;
mod process;
mod user;

pub(crate) use memory::{group_memory, physical};
pub(crate) use process::{address_space, allowed, data, in_use};
pub(crate) use quota::quota;
pub(crate) use tasks::group_threads;
pub(crate) use user::user_threads;
