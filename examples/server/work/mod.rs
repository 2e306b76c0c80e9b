//! What the requests ask for, and what it costs: plain functions that know nothing of HTTP.

pub(crate) mod gzip;
pub(crate) mod hash;
pub(crate) mod jpeg;
pub(crate) mod picture;
pub(crate) mod png;
