//! The `server` example as its clients see it: bytes in, bytes out, whatever they do.
#![cfg(unix)]

mod bad;
mod browser;
mod health;
mod jpeg;
mod overload;
mod page;
mod process;
mod results;
mod stopping;
mod watching;

#[allow(dead_code)] // These are the server's, which needs all of them.
#[path = "../../examples/server/health.rs"]
mod its_health;
#[allow(dead_code)]
#[path = "../../examples/server/history.rs"]
mod history;
#[allow(dead_code)]
#[path = "../../examples/server/work/mod.rs"]
mod work;
