//! The crate as its callers see it. Tests are named after the property they hold; those named
//! i1 to i9 hold the invariants that the crate's own comments refer to.

mod child;
mod kit;
mod watchdog;

mod admission;
mod budget;
mod build;
mod bytes;
mod circles;
mod cost;
mod deadlines;
mod futures;
mod detect;
mod ending;
mod fork;
mod lanes;
mod leases;
mod map;
mod mix;
mod nested;
mod outcome;
mod oversize;
mod places;
mod plan;
mod reentry;
mod refusal;
mod regressions;
mod scope;
#[cfg(feature = "prometheus-client")]
mod scrape;
#[cfg(feature = "axum")]
mod services;
#[cfg(feature = "hdrhistogram")]
mod times;
mod why;
mod withdrawal;
