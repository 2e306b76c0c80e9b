//! Chromium, without a screen.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The page's clock; it stands still while an answer is on its way.
const PAGE_MS: u32 = 5000;

/// A browser, and where it keeps what it keeps.
pub(crate) struct Browser {
    name: &'static str,
    profile: tempfile::TempDir,
}

impl Browser {
    /// `None` if there is none.
    pub(crate) fn find() -> io::Result<Option<Browser>> {
        for name in NAMES {
            let mut command = Command::new(name);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                return Ok(Some(Browser { name, profile: tempfile::tempdir()? }));
            }
        }
        Ok(None)
    }

    /// The page as it is after a while.
    #[allow(dead_code)] // Where only pictures are wanted.
    pub(crate) fn page(&self, url: &str) -> io::Result<String> {
        let output = self.command(url).arg("--dump-dom").output()?;
        String::from_utf8(output.stdout).map_err(io::Error::other)
    }

    pub(crate) fn screenshot(&self, url: &str, file: &Path) -> io::Result<()> {
        let mut option = std::ffi::OsString::from("--screenshot=");
        option.push(file);
        let output = self.command(url).arg(option).arg("--window-size=760,950").output()?;
        match file.exists() {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    fn command(&self, url: &str) -> Command {
        let mut command = Command::new(self.name);
        // It refuses to be root in its sandbox. What it shows is ours.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.arg(format!("--virtual-time-budget={PAGE_MS}"));
        command.arg(format!("--user-data-dir={}", self.profile.path().display()));
        command.arg(url);
        command
    }
}
