//! One file's contents, compressed with gzip.

use std::io::{self, Read, Write};

use admit::{Cost, preset};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use thiserror::Error;

const LEVEL: u32 = 6;

/// Why there is no compressed result that can be trusted.
#[derive(Debug, Error)]
pub(crate) enum GzipError {
    #[error("gzip: {0}")]
    Io(#[from] io::Error),
    #[error("gzip: decompressed output differs from the input")]
    Differs,
}

/// What it costs to compress this many bytes, which are the job's input.
pub(crate) fn cost(input_bytes: u64) -> Cost {
    let encoder = preset::deflate(LEVEL).expect("6 is a valid level");
    // What is more than can be counted is also more than can be admitted.
    let output_bytes = preset::deflate_bound(input_bytes).unwrap_or(u64::MAX);
    Cost::new(encoder.working_bytes().saturating_add(output_bytes)).input(input_bytes)
}

/// Compresses, checks the result, and says how many bytes it has.
pub(crate) fn compress(input: &[u8]) -> Result<u64, GzipError> {
    let bound = preset::deflate_bound(input.len() as u64).and_then(|it| usize::try_from(it).ok());
    // All of it now: a vector that grows holds more than its final size in between.
    let output = Vec::with_capacity(bound.expect("memory for it was admitted"));
    let mut encoder = GzEncoder::new(output, Compression::new(LEVEL));
    encoder.write_all(input)?;
    let output = encoder.finish()?;
    // The decoder needs less than the encoder, which is gone by now, so it costs nothing more.
    if decompresses_to(&output, input)? { Ok(output.len() as u64) } else { Err(GzipError::Differs) }
}

fn decompresses_to(output: &[u8], mut input: &[u8]) -> io::Result<bool> {
    let mut decoder = GzDecoder::new(output);
    let mut chunk = [0; 8192];
    loop {
        let length = decoder.read(&mut chunk)?;
        if length == 0 {
            return Ok(input.is_empty());
        }
        match input.strip_prefix(&chunk[..length]) {
            Some(rest) => input = rest,
            None => return Ok(false),
        }
    }
}
