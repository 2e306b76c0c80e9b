//! The `server` example as its clients see it: bytes in, bytes out, whatever they do.
#![cfg(unix)]

mod bad;
mod jpeg;
mod overload;
mod process;
mod results;
mod stopping;
mod watching;

#[allow(dead_code)] // It is the server's, which needs all of it.
#[path = "../../examples/server/work/mod.rs"]
mod work;
