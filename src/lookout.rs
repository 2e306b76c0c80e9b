//! Looks now and then whether a time is over that nobody else would notice, for tasks.
//!
//! A thread that waits looks by itself, see [`Gate::wait`]. A task is not polled until it is woken, so
//! there is one thread in the process that looks for all of them, while somebody waits. It is started
//! for the first task that waits, and asleep for good while nobody does.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::gate::Gate;
use crate::sys::fork::PerProcess;

struct Lookout {
    gates: Vec<Weak<Gate>>,
    thread: Option<thread::Thread>,
}

static LOOKOUT: PerProcess<Lookout> =
    PerProcess::new(|| Lookout { gates: Vec::new(), thread: None });

/// To be called by a task that waits at the gate, once the gate knows of it.
///
/// Where the thread cannot be started, times that are over are noticed at the next event, and the next
/// task that waits tries again.
pub(crate) fn watch(gate: &Arc<Gate>) {
    // A model has no clock that goes on by itself.
    if cfg!(admit_shuttle) || gate.is_watched() {
        return;
    }
    let mut lookout = LOOKOUT.lock();
    let thread = lookout.thread.take().or_else(|| {
        let named = thread::Builder::new().name(String::from("admit-lookout"));
        named.spawn(look_for_ever).ok().map(|handle| handle.thread().clone())
    });
    let Some(thread) = thread else { return };
    if gate.begin_watch() {
        lookout.gates.push(Arc::downgrade(gate));
        thread.unpark();
    }
    lookout.thread = Some(thread);
}

fn look_for_ever() {
    loop {
        let gates = LOOKOUT.lock().gates.clone();
        let next = gates.iter().filter_map(|gate| look(&gate.upgrade()?)).min();
        LOOKOUT.lock().gates.retain(|gate| gate.strong_count() > 0);
        match next {
            Some(next) => thread::park_timeout(next),
            // Whoever adds a gate unparks after that, so it is seen at once.
            None if gates.is_empty() => thread::park(),
            None => {}
        }
    }
}

/// Looks, and says when to look again. `None`: nobody waits, and the gate is not watched any more.
fn look(gate: &Arc<Gate>) -> Option<Duration> {
    if let Some(next) = gate.look_for_overdue() {
        return Some(next);
    }
    let mut lookout = LOOKOUT.lock();
    gate.end_watch();
    lookout.gates.retain(|other| other.as_ptr() != Arc::as_ptr(gate));
    drop(lookout);
    // Whoever came to wait before the watch ended may have relied on it. It came under the gate's
    // lock, so it is seen now; who comes later sees that nobody watches.
    if gate.look_for_overdue().is_some() {
        watch(gate);
    }
    None
}
