//! The text of one small file, in bytes: paths and names in `/proc` need not be UTF-8.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// No file that is read here is longer on any machine; what is longer is something else.
const MOST_BYTES: u64 = 16 << 20;

/// How much of a text is quoted when it makes no sense.
const MOST_QUOTED: usize = 40;

/// Why a file was not read.
#[derive(Debug)]
pub(super) struct Failed {
    kind: io::ErrorKind,
    code: Option<i32>,
    pub(super) why: String,
}

impl Failed {
    fn new(path: &Path, error: &io::Error) -> Failed {
        let why = format!("{}: {error}", path.display());
        Failed { kind: error.kind(), code: error.raw_os_error(), why }
    }

    /// There is no such file.
    pub(super) fn is_missing(&self) -> bool {
        self.kind == io::ErrorKind::NotFound
    }

    /// The file is that of a process which has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.is_missing() || self.code == Some(libc::ESRCH)
    }

    /// The file is there, and not for this process.
    pub(super) fn is_denied(&self) -> bool {
        self.kind == io::ErrorKind::PermissionDenied
    }
}

impl From<Failed> for String {
    fn from(failed: Failed) -> String {
        failed.why
    }
}

/// Reads a file, all of it or nothing.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    let failed = |error| Failed::new(path, &error);
    // Opening a pipe would wait for its writer, and reading a terminal for its user. What was
    // opened is looked at, and not what the path led to before.
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(failed(io::Error::other("a pipe or a device, not a file")));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(failed(io::Error::other("longer than 16 MiB")));
    }
    Ok(text)
}

/// An absolute path as seen from the root of the tree that is read.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The lines of a text, without the empty ones.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The words of a text.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A number in digits, and nothing but digits: no sign, no unit, no overflow.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The bytes in a line such as `VmSize:     3060 kB`.
pub(super) fn kibibytes(line: &[u8], name: &str) -> Option<u64> {
    let mut words = words(line.strip_prefix(name.as_bytes())?);
    let number = number(words.next()?)?;
    if words.eq([b"kB"]) { number.checked_mul(1024) } else { None }
}

/// What to say of a file whose text is not what it should be.
pub(super) fn nonsense(path: &Path, wanted: &str, text: &[u8]) -> String {
    format!("{}: {wanted} expected, found {}", path.display(), quote(text))
}

/// The beginning of a text, in printable characters.
pub(super) fn quote(text: &[u8]) -> String {
    let text = text.trim_ascii_end();
    let start = &text[..text.len().min(MOST_QUOTED)];
    let mut quoted = start.escape_ascii().to_string();
    let whole = start.len() == text.len() && quoted.len() <= MOST_QUOTED;
    quoted.truncate(MOST_QUOTED);
    let rest = if whole { "" } else { "..." };
    format!("\"{quoted}{rest}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "-1", "+1", "1k", " 1", "18446744073709551616", "0x10", "\u{663}"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn quotes_are_short_and_printable() {
        assert_eq!(quote(b"max\n"), "\"max\"");
        assert_eq!(quote(b""), "\"\"");
        assert_eq!(quote(b"\x00\xff"), "\"\\x00\\xff\"");
        for garbage in [vec![0; 1 << 20], vec![b'a'; 41], vec![b'"'; 30]] {
            let quoted = quote(&garbage);
            assert!(quoted.len() <= MOST_QUOTED + 5, "{quoted}");
            assert!(quoted.ends_with("...\""));
        }
    }
}
