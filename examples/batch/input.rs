//! The files to compress: found one by one, and read one by one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use admit::{Cost, Executor, Refused};
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

use crate::gzip;

/// What is in the crate's directory and not part of it.
const NOT_SOURCES: [&str; 2] = [".git", "target"];

/// A path that cannot be compressed, and why. The path is quoted, and so always on one line.
#[derive(Debug, Error)]
#[error("{path:?}: {reason}")]
pub(crate) struct BadInput {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, Error)]
enum Reason {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("directory loop: it leads back to {0:?}")]
    Loop(PathBuf),
    #[error("neither a regular file nor a directory")]
    Special,
    #[error(transparent)]
    NeverFits(#[from] Refused),
    #[error("its size is {size_bytes} bytes, and that is not how many it has")]
    WrongSize { size_bytes: u64 },
}

/// Every file at or below the paths.
pub(crate) fn files(paths: &[PathBuf]) -> impl Iterator<Item = Result<PathBuf, BadInput>> {
    paths.iter().flat_map(|path| walk(path, |_| true))
}

/// The crate's own files; `None` if its directory is not on this machine.
pub(crate) fn own_files() -> Option<impl Iterator<Item = Result<PathBuf, BadInput>>> {
    let is_source = |entry: &DirEntry| {
        entry.depth() != 1 || !NOT_SOURCES.iter().any(|name| entry.file_name() == *name)
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    directory.is_dir().then(|| walk(directory, is_source))
}

fn walk(
    path: &Path,
    is_wanted: impl Fn(&DirEntry) -> bool,
) -> impl Iterator<Item = Result<PathBuf, BadInput>> {
    let root = path.to_owned();
    let entries = WalkDir::new(path).follow_links(true).into_iter().filter_entry(is_wanted);
    entries.filter_map(move |entry| match entry {
        Ok(entry) if entry.file_type().is_dir() => None,
        Ok(entry) => Some(Ok(entry.into_path())),
        Err(error) => Some(Err(BadInput {
            path: error.path().unwrap_or(&root).to_owned(),
            reason: why_not_walked(error),
        })),
    })
}

fn why_not_walked(error: walkdir::Error) -> Reason {
    if let Some(ancestor) = error.loop_ancestor() {
        return Reason::Loop(ancestor.to_owned());
    }
    let text = error.to_string();
    Reason::Io(error.into_io_error().unwrap_or_else(|| io::Error::other(text)))
}

/// Reads a file that, compressed by a job, can be admitted; and says what that costs.
pub(crate) fn read(path: &Path, executor: &Executor) -> Result<(Vec<u8>, Cost), BadInput> {
    try_read(path, executor).map_err(|reason| BadInput { path: path.to_owned(), reason })
}

fn try_read(path: &Path, executor: &Executor) -> Result<(Vec<u8>, Cost), Reason> {
    // Before it is opened, since opening a FIFO waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(Reason::Special);
    }
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    let cost = gzip::cost(size_bytes);
    executor.check(cost)?;

    let size = usize::try_from(size_bytes).map_err(io::Error::other)?;
    let mut contents = Vec::new();
    contents.try_reserve_exact(size).map_err(io::Error::from)?;
    file.by_ref().take(size_bytes).read_to_end(&mut contents)?;
    // One that grows must not get more memory than it was charged for.
    let is_longer = file.read(&mut [0])? > 0;
    if contents.len() != size || is_longer {
        return Err(Reason::WrongSize { size_bytes });
    }
    Ok((contents, cost))
}
