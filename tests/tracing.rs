//! What a subscriber hears of jobs. In a process of its own: workers report to the global subscriber.
#![cfg(feature = "tracing")]

use std::io;
use std::sync::{Arc, Mutex};

use admit::{Budget, Cost, Executor, JoinError};
use tracing::info_span;
use tracing_subscriber::fmt::MakeWriter;

/// Keeps what is written, line by line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.clone()
    }
}

impl Lines {
    /// Those that were written since the last time, without the numbers of microseconds.
    fn take(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        let without = |word: &str| match word.split_once("_us=") {
            Some((name, _)) => format!("{name}_us"),
            None => word.to_owned(),
        };
        let lines = text.lines().map(|line| line.split_whitespace().map(without));
        lines.map(|words| words.collect::<Vec<_>>().join(" ")).collect()
    }
}

#[test]
fn a_subscriber_hears_of_each_phase_of_a_job_in_the_span_of_its_submitter() {
    let lines = Lines::default();
    tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_max_level(tracing::Level::DEBUG)
        .without_time()
        .with_ansi(false)
        .init();
    let budget = Budget::new(100, 0).unwrap();
    let builder = Executor::builder().workers(1).budget(budget.clone()).capacity(1);
    let executor = builder.waiting_bytes(10).build().unwrap();
    lines.take();
    let request = info_span!("request", id = 7).entered();
    let job = || {
        tracing::info!(target: "work", "at work");
        7
    };
    assert_eq!(executor.submit(Cost::new(2).input(1), job).unwrap().join().unwrap(), 7);
    let span = "request{id=7}:job{lane=\"default\" working_bytes=2 input_bytes=1}:";
    let phases = [
        format!("DEBUG {span} admit: started waited_us"),
        format!("INFO {span} work: at work"),
        format!("DEBUG {span} admit: completed ran_us"),
    ];
    assert_eq!(lines.take(), phases);

    let panics = executor.submit(Cost::new(1), || panic!("no such page")).unwrap().join();
    assert!(matches!(panics, Err(JoinError::Panicked(_))));
    let span = "request{id=7}:job{lane=\"default\" working_bytes=1 input_bytes=0}:";
    let failed = format!("DEBUG {span} admit: failed after_us error=job panicked: no such page");
    let started = format!("DEBUG {span} admit: started waited_us");
    assert_eq!(lines.take(), [started, failed]);

    drop(request);
    let permit = budget.acquire(90).unwrap();
    let waits = executor.submit(Cost::new(1), || ()).unwrap();
    assert!(executor.try_submit(Cost::new(1), || ()).is_err());
    assert!(executor.default_lane().try_reserve(Cost::new(1)).is_err());
    waits.cancel();
    let refused = "DEBUG admit: refused lane=\"default\" working_bytes=1 input_bytes=0 \
                   reason=lane is full: 1 of at most 1 jobs wait in the lane";
    let span = "job{lane=\"default\" working_bytes=1 input_bytes=0}:";
    let cancelled =
        format!("DEBUG {span} admit: failed after_us error=job was cancelled before it started");
    assert_eq!(lines.take(), [refused, refused, &cancelled]);
    drop(permit);
}
