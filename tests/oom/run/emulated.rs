//! A machine in software emulation, with a real kernel and cgroup v2, that runs the trials.
//!
//! The kernel is Debian's, unpacked and not installed. The machine's only program is this one,
//! linked statically, and busybox to set the stage. Nothing on this machine is touched but the
//! target folder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::options::Options;
use super::report::Report;
use super::trial;

/// After so long the machine hangs.
const PATIENCE_SECONDS: &str = "1500";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The packages of Debian that this takes, beside apt itself.
const PACKAGES: &str = "qemu-system-x86, busybox-static and cpio";

pub(crate) fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err(String::from("the emulated machine is an x86-64 one, and this is not"));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/emulated");
    fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
    for program in ["qemu-system-x86_64", "busybox", "cpio"] {
        let found = Command::new("which").arg(program).output();
        if !found.is_ok_and(|found| found.status.success()) {
            return Err(format!("{program} is missing; it takes Debian's packages {PACKAGES}"));
        }
    }
    let kernel = kernel(&folder)?;
    let program = program(&folder)?;
    let initrd = initrd(&folder, &program, options)?;
    boot(&kernel, &initrd, trial::cases(&options.filter).len(), report)
}

fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|why| format!("{command:?}: {why}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{command:?}: {}", output.status))
    }
}

/// The image in the package that Debian's cloud kernel depends on.
fn kernel(folder: &Path) -> Result<PathBuf, String> {
    let boot = folder.join("kernel/boot");
    let find = || {
        let entries = fs::read_dir(&boot).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        entries.into_iter().find(|path| path.to_string_lossy().contains("vmlinuz"))
    };
    if let Some(image) = find() {
        return Ok(image);
    }
    let depends = ["depends", "linux-image-cloud-amd64"];
    let depends = output(Command::new("apt-cache").args(depends))?;
    let depends = String::from_utf8_lossy(&depends).into_owned();
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.ok_or("linux-image-cloud-amd64 depends on nothing")?;
    output(Command::new("apt-get").args(["download", package]).current_dir(folder))?;
    let archives = fs::read_dir(folder).map_err(|why| why.to_string())?;
    let archive = archives
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or("apt-get download has left no package")?;
    output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder.join("kernel")))?;
    fs::remove_file(&archive).map_err(|why| why.to_string())?;
    find().ok_or(format!("{package} has no kernel in it"))
}

/// This program, for a machine without libraries.
fn program(folder: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["test", "--locked", "--no-run", "--test", "oom", "--message-format", "json"]);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(folder.join("target"));
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let messages = output(&mut cargo)?;
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "oom")
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
        .ok_or(String::from("cargo has made no program"))
}

/// The machine's file system: two programs and a script.
fn initrd(folder: &Path, program: &Path, options: &Options) -> Result<PathBuf, String> {
    let root = folder.join("root");
    let script = format!(
        "#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
/oom --json --scale quarter --runs {} --require '{}' 2>&1
echo ended $?
/bin/busybox poweroff -f
",
        options.runs_emulated, options.filter,
    );
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(root.join("bin"))?;
        fs::copy("/bin/busybox", root.join("bin/busybox"))?;
        fs::copy(program, root.join("oom"))?;
        fs::write(root.join("init"), script)?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))
    };
    make().map_err(|why| format!("{}: {why}", root.display()))?;
    let image = folder.join("initrd.gz");
    let pack = "find . | cpio -o -H newc --quiet | gzip -1 > ../initrd.gz";
    output(Command::new("sh").args(["-c", pack]).current_dir(&root))?;
    Ok(image)
}

fn boot(kernel: &Path, initrd: &Path, wanted: usize, report: &mut Report) -> Result<(), String> {
    // The machine goes when this process does, or when it hangs.
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "TERM", "timeout", PATIENCE_SECONDS, "qemu-system-x86_64"]);
    qemu.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "2G", "-nographic", "-no-reboot"]);
    qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    qemu.args(["-append", "console=ttyS0 quiet loglevel=1 panic=-1"]);
    qemu.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut machine = qemu.spawn().map_err(|why| format!("{qemu:?}: {why}"))?;
    let console = BufReader::new(machine.stdout.take().expect("piped"));
    report.title("cgroup v2, emulated");
    let (mut rows, mut said, mut has_ended) = (0, Vec::new(), false);
    for line in console.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        // The firmware's last line does not end before the first row.
        let row = line.find('{').map_or("", |start| &line[start..]);
        match serde_json::from_str::<Value>(row) {
            Ok(row) if row.is_object() => {
                let mut row = row;
                row["on"] = "cgroup v2, emulated".into();
                report.row(&row);
                rows += 1;
            }
            _ => {
                has_ended |= line == "ended 0" || line == "ended 1";
                said.push(line);
            }
        }
    }
    machine.wait().map_err(|why| why.to_string())?;
    // A row that other output of the console has run into is not to be missed.
    if has_ended && rows == wanted {
        return Ok(());
    }
    let tail = said.len().saturating_sub(20);
    Err(format!(
        "the machine did not get to the end of {wanted} rows; it said:\n{}",
        said[tail..].join("\n")
    ))
}
