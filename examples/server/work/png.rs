//! The parts of a PNG that decide about its pixels, and what they say of its size.
//!
//! A decoder unpacks colour profiles and keeps texts, as much as a client likes. So what is decoded
//! has only what was looked at.

use std::ops::Range;

/// What the header says. Sizes are in pixels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// When it is decoded: without a palette, and at least one byte for each sample.
    pub(crate) pixel_bytes: u8,
}

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
const MOST_EXIF_BYTES: usize = 64 << 10;

/// W3C PNG, 5.3: the length, the kind, the content, a checksum.
struct Chunk<'a> {
    kind: &'a [u8],
    content: &'a [u8],
    range: Range<usize>,
}

impl<'a> Chunk<'a> {
    fn at(png: &'a [u8], start: usize) -> Option<Chunk<'a>> {
        let (length, rest) = png.get(start..)?.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let kind = rest.get(..4)?;
        // The file may end within the pixels.
        let content = match rest[4..].get(..length) {
            Some(content) => content,
            None if kind == b"IDAT" => &rest[4..],
            None => return None,
        };
        let end = (start + 12 + content.len()).min(png.len());
        Some(Chunk { kind, content, range: start..end })
    }

    fn is_essential(&self) -> bool {
        let most_bytes = match self.kind {
            b"IHDR" => 13,
            b"PLTE" => 3 * 256,
            b"tRNS" => 256,
            b"eXIf" => MOST_EXIF_BYTES,
            b"IDAT" => usize::MAX,
            b"IEND" => 0,
            _ => return false,
        };
        self.content.len() <= most_bytes
    }
}

impl Picture {
    /// `None` if it is not a PNG.
    pub(crate) fn read(png: &[u8]) -> Option<Picture> {
        let mut at = png.starts_with(&SIGNATURE).then_some(SIGNATURE.len())?;
        let header = Chunk::at(png, at).filter(|chunk| chunk.kind == b"IHDR")?;
        let [ref width @ .., depth, kind, _, _, _] = *header.content else { return None };
        let (width, height) = width.split_first_chunk::<4>()?;
        let mut samples = match kind {
            0 => 1,
            2 | 3 => 3,
            4 => 2,
            6 => 4,
            _ => return None,
        };
        at = header.range.end;
        while let Some(chunk) = Chunk::at(png, at).filter(|chunk| chunk.kind != b"IDAT") {
            if chunk.kind == b"tRNS" && matches!(kind, 0 | 2 | 3) {
                samples = if kind == 0 { 2 } else { 4 };
            }
            at = chunk.range.end;
        }
        Some(Picture {
            width: u32::from_be_bytes(*width),
            height: u32::from_be_bytes(height.try_into().ok()?),
            pixel_bytes: samples * if depth == 16 { 2 } else { 1 },
        })
    }

    /// Of one row.
    pub(crate) fn row_bytes(&self) -> u64 {
        u64::from(self.width) * u64::from(self.pixel_bytes)
    }
}

/// Takes out what no pixel depends on, in place.
pub(crate) fn strip(png: &mut Vec<u8>) {
    let (mut at, mut kept) = (SIGNATURE.len(), SIGNATURE.len());
    while let Some(chunk) = Chunk::at(png, at) {
        let is_essential = chunk.is_essential();
        let range = chunk.range;
        at = range.end;
        if is_essential {
            let bytes = range.len();
            png.copy_within(range, kept);
            kept += bytes;
        }
    }
    png.truncate(kept);
}
