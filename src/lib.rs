//! An admission-controlled executor for native CPU work.
//!
//! Memory-hungry jobs (password hashing, compression, images, documents, parsing, inference) need
//! two things of a pool: processors, of which there are few, and memory, of which there is a limit
//! that kills. Here they are two numbers. A fixed set of workers takes care of the first. For the
//! second every job declares its bytes, and is admitted when they fit into a [`Budget`] beside
//! those of the jobs that run. Submission queues are bounded, so producers wait instead of piling
//! up input.
//!
//! ```
//! use admit::{Budget, Cost, Executor, MIB};
//!
//! // 1 GiB, half of it in reserve: eight jobs of 64 MiB at a time, on sixteen workers.
//! let budget = Budget::new(1024 * MIB, 512 * MIB)?;
//! let executor = Executor::builder().workers(16).budget(budget).build()?;
//!
//! let handle = executor.submit(Cost::new(64 * MIB), || 6 * 7)?;
//! assert_eq!(handle.join()?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With nothing said, the numbers are found: [`Budget::detect`] reads the memory limit,
//! [`CpuPolicy::automatic`] counts processors and threads, and the [`Plan`] says what was decided and
//! why.
//!
//! ```
//! let executor = admit::Executor::builder().build()?;
//! let plan = executor.plan();
//! println!("{plan}");
//! assert_eq!(plan.workers.started, Some(plan.workers.decided));
//! assert!(plan.memory.ledger.admissible_bytes() > 0);
//! # Ok::<(), admit::BuildError>(())
//! ```
//!
//! # What a job's bytes are
//!
//! A job holds memory in three phases: its captured input while it waits, its working set (and
//! still the input) while it runs, and its result until somebody drops it. A [`Cost`] declares the
//! first two, and there is no default: who submits must say. For the third the job
//! [keeps](Context::keep) part of its bytes. Waiting input is counted against a
//! limit of its own, which is set aside from the budget:
//!
//! ```text
//! capacity = reserve + waiting input + admissible
//! ```
//!
//! The bytes of a job follow its work, not its caller: a caller that leaves frees nothing that
//! still runs.
//!
//! # What is promised, and what is not
//!
//! Declared bytes of running jobs and permits never exceed the admissible bytes, and jobs of a lane start
//! in the order of submission, unless you [say](Budget::set_oversize) [otherwise](Overtaking). Lanes that
//! wait for the same bytes or workers get them in proportion to their shares. A submission that is refused
//! comes back with its closure, every handle resolves, and jobs that wait cannot keep an executor
//! from ending. (Jobs that run can: [`drain`](Executor::drain) and dropping wait for them, and
//! [`drain_timeout`](Executor::drain_timeout) for as long as you say.)
//!
//! The declared cost is trusted. A byte budget is not a bound on resident memory: allocators keep
//! freed memory (glibc's is [kept from it](Builder::bound_allocator), others are not), results are
//! not counted unless the job [keeps](Context::keep) bytes for them, nor is the input of submissions that
//! are blocked. The reserve is there for that.
//!
//! # Reading on
//!
//! As a user: [`Executor`], [`Lane`], [`Cost`], [`Budget`], [`Handle`], [`Lease`], [`Executor::scope`],
//! [`Executor::map`], [`Stats`], [`Plan`], [`preset`]. An executor is shared by an
//! [`Arc`](std::sync::Arc), a lane by a clone.
//!
//! As a reader of the source, follow one job: `Lane::submit` → `Gate::accept` (or, with a worker
//! free or the lane full, `Admission::offer`) → `Admission::settle` → `worker::run` → `Job::run`.
//! The modules below are in that order; `DESIGN.md` has the reasons.

mod executor;
mod builder;
mod options;
mod plan;
mod policy;
mod environment;
mod detect;
mod reserve;
mod allocator;
mod lane;
mod map;
mod scope;
mod submitting;
mod place;
mod handle;
mod context;
mod budget;
mod permit;
mod cost;
mod overtaking;
mod oversize;
mod memory;
mod cpu;
mod fact;
pub mod preset;
mod stats;
mod why;
mod counts;
#[cfg(feature = "hdrhistogram")]
mod times;
mod error;
#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "prometheus-client")]
pub mod prometheus;
#[cfg(feature = "tower")]
pub mod tower;

mod shared;
mod worker;
mod retention;
mod lookout;
mod gate;
mod intake;
mod admission;
mod answer;
mod effects;
mod crew;
mod bench;
mod queue;
mod pace;
mod permits;
mod line;
mod ledger;
mod accounts;
mod job;
mod trace;
mod running;
mod waits;
mod within;
mod waiter;
mod sync;
mod sys;

#[cfg(test)]
mod admission_model;
#[cfg(all(test, admit_shuttle))]
mod interleavings;

pub use allocator::Allocator;
pub use budget::Budget;
pub use builder::Builder;
pub use context::Context;
pub use cost::{Cost, GIB, KIB, MIB};
pub use counts::{Counts, Ended};
pub use cpu::CpuFacts;
pub use detect::Follow;
pub use environment::{Override, WORKERS_VARIABLE};
pub use error::{
    AcquireError, BuildError, DetectError, DrainError, JoinError, Limit, Panic, Refused,
    SubmitError,
};
pub use executor::Executor;
pub use fact::Fact;
pub use handle::{Handle, ScopedHandle};
pub use lane::Lane;
pub use ledger::Ledger;
pub use map::{Map, MapError};
pub use memory::MemoryFacts;
pub use options::LaneOptions;
pub use oversize::Oversize;
pub use overtaking::Overtaking;
pub use permit::{Lease, Permit};
pub use place::Place;
pub use plan::{MemoryPlan, Plan, WorkersPlan};
pub use policy::{CpuPolicy, Rounding, WorkersSource};
pub use reserve::Reserve;
pub use scope::Scope;
pub use stats::{LaneStats, Stats};
pub use submitting::Submitting;
#[cfg(feature = "hdrhistogram")]
pub use times::Times;
pub use why::{Holder, HolderKind, Resource, Why};

/// What README shows is compiled and run.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../README.md")]
struct Readme;
