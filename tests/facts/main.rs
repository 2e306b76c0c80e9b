//! What is found out about the machine, read from directory trees that stand for machines. Tests
//! are named after the property they hold.
#![cfg(any(target_os = "linux", target_os = "android"))]

mod tree;

mod garbage;
mod groups;
mod machine;
mod model;
mod mounts;
mod namespaces;
mod process;
mod quota;
mod threads;
mod user;
mod v1;
