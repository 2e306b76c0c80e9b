//! Everything that asks the operating system, and with it all code that differs by system.
//!
//! `machine` is what the system says about its memory, processors and threads. Each system has a
//! module of its own with the same functions; a system without one has `elsewhere`, which says
//! that it does not know.
#![allow(unsafe_code)]

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod nice;
pub(crate) mod resident;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux/mod.rs"]
pub(crate) mod machine;

#[cfg(target_os = "macos")]
#[path = "macos.rs"]
pub(crate) mod machine;

#[cfg(windows)]
#[path = "windows.rs"]
pub(crate) mod machine;

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", windows)))]
#[path = "elsewhere.rs"]
pub(crate) mod machine;
