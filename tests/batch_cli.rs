//! The `batch` example as its users see it: options in; status, JSON and messages out.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const MIB: u64 = 1 << 20;
const GOOD: &[u8] = b"good contents, good contents, good contents";

/// Little to hash, so that each test takes a moment only.
const FEW_HASHES: [&str; 4] = ["--hashes", "3", "--sizes", "16KiB,32KiB"];

fn batch() -> Command {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples").join(format!("batch{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{program:?} is missing: run `cargo build --examples` first");
    Command::new(program)
}

/// Runs the batch over these inputs.
fn compress(inputs: &[&Path]) -> Output {
    let options = inputs.iter().flat_map(|path| [OsStr::new("--input"), path.as_os_str()]);
    batch().args(FEW_HASHES).args(options).arg("--json").output().unwrap()
}

/// The report of a run, which also has to be the only thing on standard output.
fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {report}"))
}

fn messages(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An empty directory of the test's own.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("batch_cli").join(test);
    drop(fs::remove_dir_all(&path));
    fs::create_dir_all(&path).unwrap();
    path
}

fn good_file(directory: &Path) -> PathBuf {
    let path = directory.join("good");
    fs::write(&path, GOOD).unwrap();
    path
}

/// One bad path among good ones: the run fails, says why, and compresses the good ones.
#[track_caller]
fn assert_bad_input(inputs: &[&Path], bad: &Path, reason: &str) {
    let output = compress(inputs);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let messages = messages(&output);
    let (message, rest) = messages.split_once('\n').unwrap();
    assert!(message.starts_with(&format!("error: {bad:?}: ")), "{message}");
    assert!(message.contains(reason), "{message}");
    assert_eq!(rest, "", "one bad input is one line");

    let report = report(&output);
    assert_eq!(number(&report, "failures"), 1);
    assert_eq!(number(&report, "files"), 1);
    assert_eq!(number(&report, "input_bytes"), GOOD.len() as u64);
    assert_eq!(number(&report, "hashes"), 3);
}

#[test]
fn without_inputs_the_crates_own_files_are_compressed_and_the_numbers_agree() {
    let output = batch().args(FEW_HASHES).args(["--json"]).output().unwrap();
    assert_eq!((output.status.code(), messages(&output).as_str()), (Some(0), ""));
    let report = report(&output);
    let number = |key| number(&report, key);

    assert!(number("files") > 1);
    assert!(number("input_bytes") > number("output_bytes"));
    assert_eq!(number("rfc_7914_vectors"), 3, "the fourth needs 1 GiB");
    assert_eq!(number("hashes"), 3);
    assert_eq!(number("hashes_compared"), 1, "each of two sizes has to be computed once");
    assert_eq!(number("jobs"), number("rfc_7914_vectors") + number("hashes") + number("files"));
    assert_eq!((number("failures"), number("panicked_jobs")), (0, 0));

    assert_eq!(number("memory_bytes"), 512 * MIB);
    assert_eq!(
        number("memory_bytes"),
        number("reserve_bytes") + number("waiting_limit_bytes") + number("admissible_bytes"),
    );
    assert!(number("peak_admitted_bytes") >= 16 * MIB, "a vector needs as much");
    assert!(number("peak_admitted_bytes") <= number("admissible_bytes"));
    assert!(report["waited_seconds"].as_f64().unwrap() >= 0.0);
    assert!(report["jobs_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn many_workers_admit_no_more_than_the_budget() {
    let memory = ["--memory", "24MiB", "--reserve", "1MiB", "--waiting", "1MiB", "--queue", "2"];
    let hashes = ["--workers", "8", "--hashes", "6", "--sizes", "16MiB"];
    let output = batch().args(memory).args(hashes).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = report(&output);
    assert_eq!(number(&report, "workers"), 8);
    assert_eq!(number(&report, "hashes_compared"), number(&report, "hashes"));
    assert_eq!(number(&report, "admissible_bytes"), 22 * MIB);
    assert!(number(&report, "peak_admitted_bytes") <= 22 * MIB);
}

#[test]
fn nothing_may_wait() {
    let output = batch()
        .args(FEW_HASHES)
        .args(["--waiting", "0", "--queue", "0", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(number(&report(&output), "files") > 1);
}

#[test]
fn file_larger_than_all_waiting_bytes_is_compressed() {
    let file = directory("large").join("large");
    fs::write(&file, vec![b'x'; 300_000]).unwrap();
    let output = batch()
        .args(FEW_HASHES)
        .args(["--waiting", "1KiB", "--json", "--input"])
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(number(&report(&output), "input_bytes"), 300_000);
}

#[test]
fn without_json_there_is_a_table() {
    let output = batch()
        .args(FEW_HASHES)
        .args(["--input"])
        .arg(good_file(&directory("table")))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), messages(&output).as_str()), (Some(0), ""));
    let table = String::from_utf8(output.stdout).unwrap();
    for row in ["jobs", "time", "rate", "spent waiting", "peak admitted", "peak resident"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no {row} in {table}");
    }
}

#[test]
fn nobody_reads_standard_output() {
    let mut command = batch();
    command
        .args(FEW_HASHES)
        .arg("--input")
        .arg(good_file(&directory("pipe")))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), messages(&output).as_str()), (Some(0), ""));
}

#[test]
fn bad_options_are_refused_before_anything_is_printed() {
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--workers", "0"], &["--workers", "0 is not in 1..=1024"]),
        (&["--workers", "99999999999999999999"], &["--workers", "too large"]),
        (&["--hashes=-1"], &["--hashes", "-1"]),
        (&["--queue", "many"], &["--queue", "many"]),
        (&["--memory", "plenty"], &["--memory", "plenty", "invalid digit"]),
        (&["--memory", ""], &["--memory", "empty"]),
        (&["--memory=-5MiB"], &["--memory", "-5MiB", "invalid digit"]),
        (&["--memory", "16EiB"], &["--memory", "16EiB", "too large"]),
        (&["--memory", "64MiB", "--reserve", "65MiB"], &["reserve of 65 MiB", "of 64 MiB"]),
        (&["--waiting", "400MiB"], &["400 MiB for waiting input", "384 MiB"]),
        (&["--sizes", "3MiB"], &["--sizes", "3145728 bytes is not a power of two"]),
        (&["--sizes", "1KiB"], &["--sizes", "1024 bytes", "from 2 KiB"]),
        (&["--sizes", "16MiB,1GiB"], &["--sizes", "log_n 20", "1048578 KiB", "320 MiB"]),
        (&["--sizes", "8EiB"], &["--sizes", "never fits", "320 MiB"]),
    ];
    for (options, expected) in cases {
        let output = batch().args(options).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{options:?}: {output:?}");
        let messages = messages(&output);
        assert!(messages.starts_with("error: "), "{options:?}: {messages}");
        for part in expected {
            assert!(messages.contains(part), "{options:?}: no {part:?} in {messages}");
        }
    }
}

#[test]
fn missing_file() {
    let directory = directory("missing");
    let missing = directory.join("missing");
    assert_bad_input(&[&missing, &good_file(&directory)], &missing, "");
}

#[test]
fn file_larger_than_what_is_admissible_is_not_even_read() {
    let directory = directory("huge");
    let huge = directory.join("huge");
    good_file(&directory);
    File::create(&huge).unwrap().set_len(1 << 34).unwrap();
    assert_bad_input(&[&directory], &huge, "(17.6 GiB working, 16 GiB input), and at most 320 MiB");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn link_to_a_file_is_followed() {
        let directory = directory("link");
        let link = directory.join("link");
        symlink(good_file(&directory), &link).unwrap();
        let output = compress(&[&link]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(number(&report(&output), "input_bytes"), GOOD.len() as u64);
    }

    #[test]
    fn link_to_nothing() {
        let directory = directory("dangling");
        let link = directory.join("link");
        good_file(&directory);
        symlink("nothing", &link).unwrap();
        assert_bad_input(&[&directory], &link, "No such file");
    }

    #[test]
    fn directory_loop() {
        let directory = directory("loop");
        let link = directory.join("link");
        good_file(&directory);
        symlink(&directory, &link).unwrap();
        assert_bad_input(&[&directory], &link, "directory loop");
    }

    #[test]
    fn fifo_does_not_hang() {
        let directory = directory("fifo");
        let fifo = directory.join("fifo");
        good_file(&directory);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_bad_input(&[&directory], &fifo, "neither a regular file nor a directory");
    }

    #[test]
    fn device_does_not_hang() {
        let good = good_file(&directory("device"));
        let device = Path::new("/dev/zero");
        assert_bad_input(&[device, &good], device, "neither a regular file nor a directory");
    }

    #[test]
    fn file_without_permission() {
        let directory = directory("permission");
        let secret = directory.join("secret");
        good_file(&directory);
        fs::write(&secret, "secret").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
        if File::open(&secret).is_ok() {
            return; // Nothing is forbidden to root.
        }
        assert_bad_input(&[&directory], &secret, "denied");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_that_cannot_be_read() {
        let good = good_file(&directory("io_error"));
        // Nothing is mapped at its beginning.
        let memory = Path::new("/proc/self/mem");
        assert_bad_input(&[memory, &good], memory, "os error 5");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_with_more_bytes_than_its_size_says() {
        let good = good_file(&directory("growing"));
        let status = Path::new("/proc/self/status");
        assert_bad_input(&[status, &good], status, "its size is 0 bytes");
    }
}
