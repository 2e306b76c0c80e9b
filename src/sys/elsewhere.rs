//! A system that nobody has written readers for. It may have limits of any kind, so the answer
//! to every question is that it could not be found out.

use std::path::Path;

use crate::fact::Fact;

fn unread<T>() -> Fact<T> {
    Fact::Unread { why: String::from("no way to ask on this system") }
}

pub(crate) fn group_memory(_root: &Path) -> (Fact<u64>, Fact<u64>) {
    (unread(), unread())
}

pub(crate) fn physical(_root: &Path) -> Fact<u64> {
    unread()
}

pub(crate) fn address_space(_root: &Path) -> Fact<u64> {
    unread()
}

pub(crate) fn data(_root: &Path) -> Fact<u64> {
    unread()
}

pub(crate) fn in_use(_root: &Path) -> (Option<u64>, Option<u64>) {
    (None, None)
}

pub(crate) fn allowed(_root: &Path) -> Option<usize> {
    None
}

pub(crate) fn quota(_root: &Path) -> Fact<f64> {
    unread()
}

pub(crate) fn group_threads(_root: &Path) -> Fact<u64> {
    unread()
}

pub(crate) fn user_threads(_root: &Path) -> Fact<u64> {
    unread()
}
