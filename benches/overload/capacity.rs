//! What the machine does of this work with nothing else to do.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::bodies::Bodies;
use crate::load::Kind;

const LASTS: Duration = Duration::from_secs(4);

/// Processors' worth of work, at what it costs alone, that two threads get done side by side: they may
/// share caches, memory, or a core.
pub(crate) fn of_two_threads(bodies: &Bodies) -> f64 {
    let heavy = || Kind::ALL.into_iter().skip(1).flat_map(|kind| bodies.of_kind(kind));
    let work = Mutex::new(heavy().cycle());
    let start = Instant::now();
    let run = || {
        let mut done = Duration::ZERO;
        while start.elapsed() < LASTS {
            let next = work.lock().expect("nothing panics under this lock").next();
            let body = next.expect("it goes on for ever");
            body.work();
            done += body.cpu;
        }
        (done, start.elapsed())
    };
    thread::scope(|scope| {
        let threads = [scope.spawn(run), scope.spawn(run)];
        threads
            .map(|thread| thread.join().expect("the work does not panic"))
            .iter()
            .map(|(done, elapsed)| done.as_secs_f64() / elapsed.as_secs_f64())
            .sum()
    })
}
