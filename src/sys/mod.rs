//! Everything that asks the operating system, and with it all code that differs by system.
#![allow(unsafe_code)]

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod nice;
pub(crate) mod resident;
