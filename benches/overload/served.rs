//! The process under trial, in a memory group of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::group::{Group, Hierarchy};

type Failure = Box<dyn std::error::Error>;

/// Enters the groups, asks to die with its parent, and becomes the program.
const ENTER: &str = r#"
    while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit; shift; done; shift
    exec setpriv --pdeathsig KILL -- "$@"
"#;
/// What would help an allocator along, which is not to be.
const ALLOCATOR_VARIABLES: [&str; 2] = ["GLIBC_TUNABLES", "MALLOC_ARENA_MAX"];
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) group: Group,
    /// Kept open: a server that writes into a closed pipe is killed.
    _stdout: BufReader<std::process::ChildStdout>,
}

impl Served {
    pub(crate) fn start(
        hierarchy: &Hierarchy,
        limit_bytes: u64,
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Served, Failure> {
        let group = Group::new(hierarchy, limit_bytes, None)?;
        let mut command = Command::new("sh");
        command.args(["-c", ENTER, "sh"]).args(&group.folders).arg("--");
        command.arg(program).args(arguments);
        for variable in ALLOCATOR_VARIABLES {
            command.env_remove(variable);
        }
        let log = File::options().create(true).append(true).open(log)?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let address = loop {
            let mut line = String::new();
            if stdout.read_line(&mut line)? == 0 {
                return Err(format!("{}: did not begin to listen", program.display()).into());
            }
            if let Some(address) = line.trim_end().strip_prefix("listening on http://") {
                break address.parse()?;
            }
        };
        Ok(Served { child, address, group, _stdout: stdout })
    }

    pub(crate) fn has_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(crate) fn terminate(&self) -> io::Result<()> {
        let kill = format!("kill -TERM {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("it is gone already")) }
    }

    pub(crate) async fn end_within(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + time;
        loop {
            match self.has_ended()? {
                Some(status) => return Ok(Some(status)),
                None if Instant::now() > until => return Ok(None),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// When it has ended by itself: never, mostly.
    pub(crate) async fn died(&mut self) -> io::Result<()> {
        while self.has_ended()?.is_none() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
