//! One trial from the outside: the group, the child, and what became of it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::allocator;
use super::group::{Group, Hierarchy};
use super::options::Scale;
use super::trial::{Case, Expected, How, Name};

/// A trial that takes longer hangs. Emulation is slow.
const PATIENCE: Duration = Duration::from_secs(240);
/// How many times over a control that must be killed does its jobs. It takes several large ones at
/// the same moment, which is likely at any time, and not certain in one batch on a busy machine.
const BATCHES_TO_BE_KILLED: u64 = 10;
/// Of threads, in the trial about them.
const THREADS: u64 = 20;

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    pub(crate) peak_bytes: u64,
    pub(crate) time: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Survived,
    /// By the kernel, for want of memory in this group: its own count says so, and the group was
    /// full. (The count has those as well for which a group above was full, or the machine.)
    Killed,
    Failed(String),
}

impl Outcome {
    pub(crate) fn is(&self, expected: Expected) -> bool {
        match expected {
            Expected::Lives => self.ended == Ended::Survived,
            Expected::Killed => self.ended == Ended::Killed,
            Expected::NoThreads => {
                matches!(&self.ended, Ended::Failed(why) if why.contains("failed to spawn thread"))
            }
            Expected::Any => true,
        }
    }
}

pub(crate) fn run(hierarchy: &Hierarchy, case: &Case, runs: usize, scale: Scale) -> Vec<Outcome> {
    let scale = scale.of(case.name);
    (0..runs)
        .map(|run| {
            let seed = run as u64 + 1;
            once(hierarchy, case, scale, seed).unwrap_or_else(|why| Outcome {
                ended: Ended::Failed(why.to_string()),
                peak_bytes: 0,
                time: Duration::ZERO,
            })
        })
        .collect()
}

fn once(hierarchy: &Hierarchy, case: &Case, scale: Scale, seed: u64) -> std::io::Result<Outcome> {
    let limit_bytes = scale.bytes(case.name.limit_bytes());
    let threads = (case.name == Name::Pids).then_some(THREADS);
    let group = Group::new(hierarchy, limit_bytes, threads)?;
    let start = Instant::now();
    let mut child = spawn(case, scale, seed, &group)?;
    let (line, lines) = channel();
    let output = BufReader::new(child.stdout.take().expect("piped"));
    // Ends when the child does: nobody else has the other end of the pipe.
    let reader = thread::spawn(move || {
        output.lines().map_while(Result::ok).for_each(|text| drop(line.send(text)));
    });
    let (mut is_done, mut budget_bytes) = (false, None::<u64>);
    let mut least_limit_bytes = limit_bytes;
    let ended = loop {
        match lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
            Ok(text) if text == "lower" => {
                least_limit_bytes = limit_bytes / 3 * 2;
                group.lower(least_limit_bytes)?;
                let mut input = child.stdin.take().expect("piped");
                input.write_all(b"lowered\n")?;
            }
            Ok(text) if text == "done" => is_done = true,
            Ok(text) => {
                let bytes = text.strip_prefix("budget ").and_then(|bytes| bytes.parse().ok());
                budget_bytes = bytes.or(budget_bytes);
            }
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                break Some(Ended::Failed(format!("hangs after {PATIENCE:?}")));
            }
        }
    };
    let status = child.wait()?;
    let time = start.elapsed();
    drop(reader.join());
    let mut complaint = String::new();
    if let Some(mut errors) = child.stderr.take() {
        std::io::Read::read_to_string(&mut errors, &mut complaint)?;
    }
    let (kills, peak_bytes) = (group.kills()?, group.peak_bytes()?);
    let is_full = peak_bytes >= least_limit_bytes / 10 * 9;
    let mut ended = ended.unwrap_or_else(|| match (status.signal(), kills) {
        (Some(libc::SIGKILL), 1..) if is_full => Ended::Killed,
        (None, 0) if status.success() && is_done => Ended::Survived,
        _ => {
            let peak_mib = peak_bytes >> 20;
            Ended::Failed(format!(
                "{status}, {kills} kills, peak of {peak_mib} MiB: {}",
                complaint.trim()
            ))
        }
    });
    if let (Name::Gzip, How::Admit, Some(budget_bytes)) = (case.name, case.how, budget_bytes) {
        let baseline = baseline_bytes(hierarchy, scale)?;
        let most_bytes = (budget_bytes + baseline) / 10 * 11;
        if peak_bytes > most_bytes {
            let why = format!("peak of {peak_bytes} bytes is above {most_bytes}");
            ended = Ended::Failed(why);
        }
    }
    Ok(Outcome { ended, peak_bytes, time })
}

/// What a process takes in such a group whose workers have nothing to do.
fn baseline_bytes(hierarchy: &Hierarchy, scale: Scale) -> std::io::Result<u64> {
    let idle = Case { name: Name::Gzip, how: How::Idle, expected: Expected::Lives };
    Ok(once(hierarchy, &idle, scale, 0)?.peak_bytes)
}

fn spawn(case: &Case, scale: Scale, seed: u64, group: &Group) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").args(["--seed", &seed.to_string()]);
    let batches = if case.expected == Expected::Killed { BATCHES_TO_BE_KILLED } else { 1 };
    command.args(["--batches", &batches.to_string()]);
    command.args(["--parent", &std::process::id().to_string()]);
    for (option, value) in [
        ("--name", case.name.to_possible_value()),
        ("--how", case.how.to_possible_value()),
        ("--scale", scale.to_possible_value()),
    ] {
        command.args([option, value.expect("none is hidden").get_name()]);
    }
    for folder in &group.folders {
        command.arg("--group").arg(folder);
    }
    allocator::set(&mut command, case.how);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}
