//! An admission-controlled executor for native CPU work.

mod budget;
mod builder;
mod context;
mod cost;
mod error;
mod executor;
mod handle;
mod lane;
mod map;
pub mod preset;
mod scope;
mod stats;

mod admission;
mod crew;
mod gate;
mod intake;
mod job;
mod ledger;
mod line;
mod queue;
mod shared;
mod sync;
mod sys;

#[cfg(all(test, admit_shuttle))]
mod interleavings;
mod waiter;
mod worker;

pub use budget::{Budget, Permit};
pub use builder::{Builder, LaneOptions};
pub use context::Context;
pub use cost::{Cost, GIB, KIB, MIB};
pub use error::{
    AcquireError, BuildError, DrainError, JoinError, Limit, Panic, Refused, SubmitError,
};
pub use executor::Executor;
pub use handle::{Handle, ScopedHandle};
pub use lane::Lane;
pub use ledger::Ledger;
pub use map::{Map, MapError};
pub use scope::Scope;
pub use stats::{Counts, LaneStats, Stats, Why};
