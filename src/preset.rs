//! Costs of well-known memory-hungry jobs, computed from their parameters.
//!
//! Each function counts the bytes that one run asks the heap allocator for at its peak. The
//! allocator's own bookkeeping and rounding, the thread's stack, and the buffers the caller
//! passes in are not counted. `tests/preset_peak.rs` compares every formula with a counting
//! allocator around the real crate.
//!
//! Parameters may come from an untrusted place, such as a stored password hash. A bad value is an
//! error, never a panic or a wrapped number.
//!
//! ```
//! use admit::MIB;
//! use admit::preset;
//!
//! let hash = preset::scrypt(17, 8, 1)?;
//! let gzip = preset::deflate(6)?;
//!
//! assert_eq!(hash.working_bytes() / MIB, 128);
//! assert!(gzip.working_bytes() < MIB);
//! # Ok::<(), admit::preset::PresetError>(())
//! ```

use crate::cost::Cost;

/// The largest value RFC 7914 allows for `r * p`, from `p <= ((2^32 - 1) * 32) / (128 * r)`.
const SCRYPT_MAX_R_TIMES_P: u32 = (1 << 30) - 1;

/// A parameter given to a function in this module is outside its allowed range.
///
/// ```
/// use admit::preset::{self, PresetError};
///
/// let error = preset::scrypt(0, 8, 1).unwrap_err();
/// assert_eq!(error, PresetError::ScryptLogN { log_n: 0 });
/// assert_eq!(error.to_string(), "scrypt log_n is 0, allowed is 1 to 63");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// `log_n` is not between 1 and 63. RFC 7914 requires N to be above 1.
    #[error("scrypt log_n is {log_n}, allowed is 1 to 63")]
    ScryptLogN {
        /// The refused base-2 logarithm of N.
        log_n: u8,
    },

    /// `r` is 0, or so large that not even `p = 1` is allowed with it.
    #[error("scrypt r is {r}, allowed is 1 to {SCRYPT_MAX_R_TIMES_P}")]
    ScryptR {
        /// The refused block size.
        r: u32,
    },

    /// `p` is 0, or so large that not even `r = 1` is allowed with it.
    #[error("scrypt p is {p}, allowed is 1 to {SCRYPT_MAX_R_TIMES_P}")]
    ScryptP {
        /// The refused parallelization.
        p: u32,
    },

    /// `r` and `p` are each allowed, but their product is not.
    #[error("scrypt r * p is {r} * {p}, allowed is 1 to {SCRYPT_MAX_R_TIMES_P}")]
    ScryptRTimesP {
        /// The block size.
        r: u32,
        /// The parallelization.
        p: u32,
    },

    /// Every parameter is valid, but the memory needed is more than a `u64` can count.
    #[error(
        "scrypt needs 2^64 bytes or more with log_n {log_n}, r {r}, p {p}, \
         allowed is 128 * r * (2^log_n + p + 1) below 2^64"
    )]
    ScryptTooLarge {
        /// The base-2 logarithm of N.
        log_n: u8,
        /// The block size.
        r: u32,
        /// The parallelization.
        p: u32,
    },

    /// `level` is above 9.
    #[error("deflate level is {level}, allowed is 0 to 9")]
    DeflateLevel {
        /// The refused compression level.
        level: u32,
    },
}

/// The cost of one scrypt run with N = 2<sup>`log_n`</sup>, block size `r` and parallelization `p`.
///
/// # Formula
///
/// `128 * r * (N + p + 1)` bytes, the three buffers the [`scrypt`] crate 0.12 allocates
/// (`scrypt` and `romix_sequential` in its `src/lib.rs`):
///
/// - `128 * r * N` for V, the large table;
/// - `128 * r * p` for B, one block for each of the `p` lanes;
/// - `128 * r` for T, the scratch block.
///
/// RFC 7914 names V and B; T is the crate's own. The lanes run one after another and share V
/// and T, so `p` multiplies the time but hardly the memory. That is not so with the crate's
/// `parallel` feature, where each running lane allocates its own V and T: this formula does not
/// cover it. Other implementations differ slightly; OpenSSL allocates `128 * r` bytes more.
///
/// The password, the salt and the output belong to the caller and are not counted.
///
/// # Errors
///
/// The ranges are those of RFC 7914 section 2 and of `scrypt::Params::new`:
///
/// - `log_n` from 1 to 63 (the crate alone would also take 0, which RFC 7914 forbids);
/// - `r` and `p` at least 1, with `r * p` at most 2<sup>30</sup> - 1. The crate multiplies them
///   as `u32`, so values whose product wraps must be refused before they reach it;
/// - a cost that fits in a `u64`.
///
/// Like the crate, this leaves out the RFC's `N < 2^(128 * r / 8)`, a known mistake in the RFC
/// (erratum 5971). On a 32-bit target the crate refuses sizes above `usize`, while this function
/// still states what they would cost.
///
/// # Examples
///
/// ```
/// use admit::preset;
///
/// let cost = preset::scrypt(17, 8, 1)?;
/// assert_eq!(cost.working_bytes(), 128 * 8 * (131_072 + 1 + 1));
/// assert_eq!(cost.input_bytes(), 0);
///
/// // A forged hash cannot make the estimate wrap around to something small.
/// assert!(preset::scrypt(63, 8, 1).is_err());
/// # Ok::<(), preset::PresetError>(())
/// ```
///
/// [`scrypt`]: https://docs.rs/scrypt/0.12
pub fn scrypt(log_n: u8, r: u32, p: u32) -> Result<Cost, PresetError> {
    if !(1..=63).contains(&log_n) {
        return Err(PresetError::ScryptLogN { log_n });
    }
    if !(1..=SCRYPT_MAX_R_TIMES_P).contains(&r) {
        return Err(PresetError::ScryptR { r });
    }
    if !(1..=SCRYPT_MAX_R_TIMES_P).contains(&p) {
        return Err(PresetError::ScryptP { p });
    }
    if u64::from(r) * u64::from(p) > u64::from(SCRYPT_MAX_R_TIMES_P) {
        return Err(PresetError::ScryptRTimesP { r, p });
    }

    // With the ranges above neither of these can overflow; only their product can.
    let block = 128 * u64::from(r);
    let blocks = (1_u64 << log_n) + u64::from(p) + 1;
    match block.checked_mul(blocks) {
        Some(working_bytes) => Ok(Cost::new(working_bytes)),
        None => Err(PresetError::ScryptTooLarge { log_n, r, p }),
    }
}

/// `miniz_oxide`, `LZOxide::codes`: `LZ_CODE_BUF_SIZE` bytes.
const LZ_CODES: u64 = 64 * 1024;
/// `miniz_oxide`, `LocalBuf`: `OUT_BUF_SIZE`, which is `LZ_CODE_BUF_SIZE * 13 / 10` bytes.
const LOCAL_BUF: u64 = LZ_CODES * 13 / 10;
/// `miniz_oxide`, `HashBuffers::dict`: the window and the longest match.
const DICT: u64 = 32_768 + 258;
/// `miniz_oxide`, `HashBuffers::next` and `HashBuffers::hash`: 32,768 entries of `u16` each.
const HASH_CHAINS: u64 = 2 * 32_768 * 2;
/// `miniz_oxide`, `HuffmanOxide`: two `u16` and one `u8` for each of 288 symbols in 3 tables.
const HUFFMAN: u64 = 3 * 288 * (2 + 2 + 1);
/// flate2, `zio::Writer::buf`.
const WRITER_BUF: u64 = 32 * 1024;
/// The gzip header and the counters, flags and pointers next to `LZOxide::codes`: 186 bytes on
/// x86-64. The compiler chooses the layout and fields come and go, so this leaves room.
const SMALL_FIELDS: u64 = 1024;

/// The cost of compressing one gzip, zlib or deflate stream with flate2 at `level`.
///
/// This is for the streaming encoders `flate2::write::{GzEncoder, ZlibEncoder, DeflateEncoder}`
/// with flate2's default backend, `miniz_oxide`. It does not grow with the length of the input.
///
/// **The compressed output is not included.** A job that writes to a socket or a file needs
/// nothing more; a job that collects the output in memory adds [`deflate_bound`]. Optional gzip
/// header fields set with `flate2::GzBuilder` (file name, comment, extra) are not included either.
///
/// # Formula
///
/// 352,942 bytes, about 345 KiB, the same at every level. It is the sum of what `miniz_oxide` 0.9
/// (`src/deflate/buffer.rs`, `src/deflate/core.rs`) and flate2 1.1 (`src/zio.rs`) allocate:
///
/// | bytes | what |
/// |---:|---|
/// | 65,536 | LZ code buffer |
/// | 85,196 | pending output, 1.3 times the LZ code buffer |
/// | 33,026 | dictionary: 32 KiB window and the longest match |
/// | 131,072 | hash chains: two tables of 32,768 `u16` |
/// | 4,320 | Huffman tables |
/// | 32,768 | flate2's writer buffer |
/// | 1,024 | allowance for the gzip header and small fields |
///
/// The level changes only how long `miniz_oxide` searches the hash chains. It allocates them at
/// level 0 too, where it never uses them.
///
/// # Errors
///
/// `level` must be at most 9, the scale flate2 documents.
///
/// # Examples
///
/// ```
/// use admit::{Cost, preset};
///
/// let cost = preset::deflate(6)?;
/// assert_eq!(cost.working_bytes(), 352_942);
/// assert_eq!(preset::deflate(0)?, preset::deflate(9)?);
/// assert!(preset::deflate(10).is_err());
///
/// // Compressing a 1 MB body into a `Vec` that was created with this capacity:
/// let body = 1_000_000;
/// let output = preset::deflate_bound(body).expect("a megabyte is far below the limit");
/// let cost = Cost::new(cost.working_bytes() + output).input(body);
/// assert_eq!(cost.total_bytes(), Some(352_942 + 1_100_133 + 1_000_000));
/// # Ok::<(), preset::PresetError>(())
/// ```
pub fn deflate(level: u32) -> Result<Cost, PresetError> {
    if level > 9 {
        return Err(PresetError::DeflateLevel { level });
    }
    Ok(Cost::new(LZ_CODES + LOCAL_BUF + DICT + HASH_CHAINS + HUFFMAN + WRITER_BUF + SMALL_FIELDS))
}

/// An upper bound, in bytes, on the compressed size of `input_bytes` bytes, at any level.
///
/// It covers the same encoders as [`deflate`], including the plain gzip or zlib header and
/// trailer, as long as the encoder is only written to and finished. Each call to `flush` in
/// between adds a few bytes that are not covered, and so do optional gzip header fields.
///
/// Give the output `Vec` this capacity up front. One that grows as needed can end up with twice
/// its length in capacity, and holds its old and its new buffer at once while it grows.
///
/// `None` when the bound does not fit in a `u64`.
///
/// # Formula
///
/// `input_bytes + input_bytes / 10 + 133`, which is never below `mz_deflateBound` of miniz, the
/// C library `miniz_oxide` was ported from:
/// `max(128 + n * 110 / 100, 128 + n + (n / (31 * 1024) + 1) * 5)`. That function is documented
/// as "(very) conservative". The reasons it holds for `miniz_oxide` as well:
///
/// - Level 0 stores blocks of 31 KiB with 5 bytes around each. At the other levels a block that
///   would not shrink and is still inside the 32 KiB window is stored the same way. Only a last
///   block of at most 32 bytes is not checked; its fixed code takes at most 9 bits per byte.
/// - A block too large for the window has its own Huffman code, so it is no longer than with one
///   that ignores the data and gives 226 literal and length symbols 8 bits, the rarest 60 of them
///   9 bits, and each distance 5 bits plus its extra bits. At 8 bits per symbol nothing grows: the
///   costliest match that is kept, 3 bytes from up to 8 KiB back, takes 8 + 5 + 11 = 24 bits. The
///   ninth bit adds at most 60 / 286 bit per symbol, or 0.03 times the input. The description of
///   the code is at most 290 bytes for more than 31 KiB of input, or 0.01 times. Capping codes at
///   15 bits costs something only on data so uneven that it shrinks a lot.
///
/// # Examples
///
/// ```
/// use admit::preset;
///
/// assert_eq!(preset::deflate_bound(0), Some(133));
/// assert_eq!(preset::deflate_bound(1_000), Some(1_233));
/// assert_eq!(preset::deflate_bound(u64::MAX), None);
/// ```
#[must_use]
pub fn deflate_bound(input_bytes: u64) -> Option<u64> {
    input_bytes.checked_add(input_bytes / 10)?.checked_add(133)
}
