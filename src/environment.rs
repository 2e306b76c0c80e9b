//! What the one who operates a program says through its environment.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use crate::error::BuildError;

/// The environment variable that [`CpuPolicy::or_environment`](crate::CpuPolicy::or_environment)
/// reads.
pub const WORKERS_VARIABLE: &str = "ADMIT_WORKERS";

/// What the variable means to this program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Override {
    /// There is no such variable.
    Absent,
    /// It has entries, and none for the program of this name.
    NotNamed(String),
    /// So many workers.
    Workers(usize),
    /// It has an entry for this program, which was meant for the program's parent.
    Inherited,
}

/// Empty where there is nothing to say beside the number of workers.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Override::Absent | Override::Workers(_) => Ok(()),
            Override::NotNamed(program) => {
                write!(f, "{WORKERS_VARIABLE} has no entry for {program:?}")
            }
            Override::Inherited => write!(f, "{WORKERS_VARIABLE} was meant for the parent process"),
        }
    }
}

/// Reads the variable of this process.
pub(crate) fn workers() -> Result<Override, BuildError> {
    let Some(value) = std::env::var_os(WORKERS_VARIABLE) else { return Ok(Override::Absent) };
    let program = std::env::args_os().next().unwrap_or_default();
    let found = find(&value, program_name(&program))?;
    if matches!(found, Override::Workers(_)) && is_parent_the_same_program() {
        return Ok(Override::Inherited);
    }
    Ok(found)
}

fn find(value: &OsStr, program: &OsStr) -> Result<Override, BuildError> {
    let bad = || BuildError::Environment { value: value.to_string_lossy().into_owned() };
    let mut found = Override::NotNamed(program.to_string_lossy().into_owned());
    let mut names = HashSet::new();
    for entry in value.to_str().ok_or_else(bad)?.split(',') {
        // The last equals sign: a program's name may have one.
        let (name, workers) = entry.rsplit_once('=').ok_or_else(bad)?;
        let (name, workers) = (name.trim(), workers.trim());
        // The standard library's numbers may have a plus sign.
        if !workers.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(bad());
        }
        let workers: usize = workers.parse().map_err(|_| bad())?;
        if name.is_empty() || workers == 0 || !names.insert(name) {
            return Err(bad());
        }
        if program == name {
            found = Override::Workers(workers);
        }
    }
    Ok(found)
}

fn program_name(path: &OsStr) -> &OsStr {
    let name = Path::new(path).file_name().unwrap_or_default();
    let suffix = std::env::consts::EXE_SUFFIX;
    match name.to_str().and_then(|name| name.strip_suffix(suffix)) {
        Some(stem) => OsStr::new(stem),
        None => name,
    }
}

#[cfg(target_os = "linux")]
fn is_parent_the_same_program() -> bool {
    let parent = std::os::unix::process::parent_id();
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    // A parent that cannot be looked at belongs to somebody else.
    of(&parent.to_string()).is_some_and(|parent| Some(parent) == of("self"))
}

#[cfg(not(target_os = "linux"))]
fn is_parent_the_same_program() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Override> {
        find(OsStr::new(value), OsStr::new("server")).ok()
    }

    #[test]
    fn a_program_acts_on_the_entry_with_its_name() {
        assert_eq!(read("server=16"), Some(Override::Workers(16)));
        assert_eq!(read(" thumbs=4 , server = 3"), Some(Override::Workers(3)));
        let not_named = Override::NotNamed(String::from("server"));
        assert_eq!(read("thumbs=4"), Some(not_named.clone()));
        assert_eq!(read("a=b=2"), Some(not_named));
    }

    #[test]
    fn whatever_does_not_read_like_entries_is_an_error() {
        for value in [
            "",
            "16",
            "server",
            "server=",
            "server=0",
            "server=-1",
            "server=1.5",
            "server=+5",
            "=3",
            "server=3,",
            "server=3,thumbs",
            "server=3,server=4",
            "server=99999999999999999999",
            "thumbs=x",
            "thumbs=3,server=4,thumbs=3",
        ] {
            assert_eq!(read(value), None, "{value:?}");
        }
    }

    #[test]
    fn a_programs_name_is_the_last_part_of_its_path() {
        for path in ["/usr/bin/server", "server", "./target/server"] {
            let path = format!("{path}{}", std::env::consts::EXE_SUFFIX);
            assert_eq!(program_name(OsStr::new(&path)), "server");
        }
        assert_eq!(program_name(OsStr::new("")), "");
    }
}
