//! What the batch was like, for people and for programs.

use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use admit::Stats;
use indicatif::BinaryBytes;
use parse_size::Config;
use serde::Serialize;

use crate::hash::RFC_7914;
use crate::tally::Totals;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    jobs: u64,
    hashes: u64,
    hashes_compared: u64,
    rfc_7914_vectors: u64,
    files: u64,
    input_bytes: u64,
    output_bytes: u64,
    failures: u64,
    panicked_jobs: u64,
    workers: usize,
    elapsed_seconds: f64,
    jobs_per_second: f64,
    waited_seconds: f64,
    memory_bytes: u64,
    reserve_bytes: u64,
    waiting_limit_bytes: u64,
    admissible_bytes: u64,
    peak_admitted_bytes: u64,
    peak_resident_bytes: Option<u64>,
}

impl Report {
    pub(crate) fn new(stats: &Stats, totals: &Totals, elapsed: Duration) -> Report {
        let jobs = stats.counts.completed;
        let ledger = stats.ledger;
        Report {
            jobs,
            hashes: totals.hashes,
            hashes_compared: totals.hashes_compared,
            rfc_7914_vectors: totals.vectors,
            files: totals.files,
            input_bytes: totals.input_bytes,
            output_bytes: totals.output_bytes,
            failures: totals.failures,
            panicked_jobs: stats.counts.panicked,
            workers: stats.workers,
            elapsed_seconds: elapsed.as_secs_f64(),
            jobs_per_second: jobs as f64 / elapsed.as_secs_f64(),
            waited_seconds: stats.counts.waited.as_secs_f64(),
            memory_bytes: ledger.capacity_bytes,
            reserve_bytes: ledger.reserve_bytes,
            waiting_limit_bytes: ledger.waiting_limit_bytes,
            admissible_bytes: ledger.admissible_bytes(),
            peak_admitted_bytes: ledger.peak_held_bytes,
            peak_resident_bytes: peak_resident_bytes(),
        }
    }

    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (name, value) in self.rows() {
            writeln!(out, "{name:<18}{value}")?;
        }
        Ok(())
    }

    fn rows(&self) -> [(&'static str, String); 11] {
        let size = |bytes| BinaryBytes(bytes).to_string();
        let (input, output) = (size(self.input_bytes), size(self.output_bytes));
        let (admitted, admissible) = (size(self.peak_admitted_bytes), size(self.admissible_bytes));
        [
            ("jobs", format!("{} on {} workers", self.jobs, self.workers)),
            (
                "rfc 7914 vectors",
                format!(
                    "{} right (of {}, those that fit the memory)",
                    self.rfc_7914_vectors,
                    RFC_7914.len()
                ),
            ),
            (
                "hashes",
                format!(
                    "{}, {} compared with an answer known before",
                    self.hashes, self.hashes_compared
                ),
            ),
            ("files", format!("{}, all compared", self.files)),
            ("compressed", format!("{input} to {output}")),
            ("failures", (self.failures + self.panicked_jobs).to_string()),
            ("time", format!("{:.2} s", self.elapsed_seconds)),
            ("rate", format!("{:.1} jobs/s", self.jobs_per_second)),
            ("spent waiting", format!("{:.2} s, in sum over all jobs", self.waited_seconds)),
            ("peak admitted", format!("{admitted} of {admissible} admissible")),
            ("peak resident", self.peak_resident_bytes.map_or("unknown".into(), size)),
        ]
    }
}

/// The most memory the process has had; `None` where the system does not say.
fn peak_resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    // The kernel writes kB and means KiB.
    Config::new().with_binary().parse_size(peak.trim()).ok()
}
