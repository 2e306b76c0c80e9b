//! Compression.

use std::io::Write;

use admit::{Cost, preset};
use flate2::Compression;
use flate2::write::GzEncoder;

const LEVEL: u32 = 6;
/// Between two looks at whether anybody still wants the result: about 5 ms of work.
const BLOCK_BYTES: usize = 256 << 10;

/// The encoder, and room for its result, for an input of so many bytes.
pub(crate) fn cost(input_bytes: u64) -> Cost {
    let encoder = preset::deflate(LEVEL).expect("6 is a level");
    let output_bytes = preset::deflate_bound(input_bytes).unwrap_or(u64::MAX);
    Cost::new(encoder.working_bytes().saturating_add(output_bytes)).input(input_bytes)
}

/// `None`: nobody wants it any more.
///
/// It takes the input, to have it gone when the output is cut to its length, for which an allocator may
/// hold it twice.
pub(crate) fn compress(input: impl AsRef<[u8]>, is_wanted: impl Fn() -> bool) -> Option<Vec<u8>> {
    let bound = preset::deflate_bound(input.as_ref().len() as u64).expect("the input is in memory");
    let output = Vec::with_capacity(usize::try_from(bound).expect("so is the output"));
    let mut encoder = GzEncoder::new(output, Compression::new(LEVEL));
    for block in input.as_ref().chunks(BLOCK_BYTES) {
        if !is_wanted() {
            return None;
        }
        encoder.write_all(block).expect("a vector takes anything");
    }
    drop(input);
    let mut output = encoder.finish().expect("a vector takes anything");
    output.shrink_to_fit();
    Some(output)
}
