//! The parts of a JPEG that decide about its pixels, and what they say of its size.
//!
//! A decoder keeps copies of what applications have added (colour profiles, comments), as much as a
//! client likes, and may take bytes in between for a header that says something else than the one that was
//! charged. So what is decoded has only what was looked at, all of it of exactly the length it says.

use std::ops::Range;

/// Of the frame, and of the first scan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// The horizontal and vertical sampling factor of each component.
    pub(crate) samplings: Vec<(u8, u8)>,
    /// The whole picture comes in one pass, from top to bottom. If not, a decoder has to keep all
    /// coefficients until the last pass.
    pub(crate) is_one_pass: bool,
}

/// ITU-T T.81, table B.1, and the two of the segments for applications that are of use.
const BASELINE: u8 = 0xc0;
const EXTENDED: u8 = 0xc1;
const PROGRESSIVE: u8 = 0xc2;
const HUFFMAN_TABLES: u8 = 0xc4;
const RESTARTS: Range<u8> = 0xd0..0xd8;
const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;
const QUANTIZATION_TABLES: u8 = 0xdb;
const RESTART_INTERVAL: u8 = 0xdd;
const EXIF: u8 = 0xe1;
const ADOBE: u8 = 0xee;

/// A marker and what belongs to it. The data that follow the header of a scan are a segment of their own.
struct Segment<'a> {
    /// `None`: the data of a scan.
    marker: Option<u8>,
    content: &'a [u8],
    range: Range<usize>,
}

impl<'a> Segment<'a> {
    /// What begins at `start`, if that is of exactly the length it says.
    fn at(jpeg: &'a [u8], start: usize) -> Option<Segment<'a>> {
        let mut marker_at = start;
        while jpeg.get(marker_at..)?.starts_with(&[0xff, 0xff]) {
            marker_at += 1;
        }
        let rest = &jpeg[marker_at..];
        let &[first, marker, ..] = rest else { return None };
        if !is_marker([first, marker]) {
            let content = &rest[..scan_bytes(rest)];
            return Some(Segment {
                marker: None,
                content,
                range: start..marker_at + content.len(),
            });
        }
        let [high, low] = *rest.get(2..4)? else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let content = rest.get(4..2 + length)?;
        let is_exact = match marker {
            BASELINE | EXTENDED | PROGRESSIVE => {
                content.get(5).is_some_and(|count| content.len() == 6 + 3 * usize::from(*count))
            }
            START_OF_SCAN => {
                content.first().is_some_and(|count| content.len() == 4 + 2 * usize::from(*count))
            }
            HUFFMAN_TABLES => are_tables(content, |table| {
                Some(17 + table.get(1..17)?.iter().map(|count| usize::from(*count)).sum::<usize>())
            }),
            QUANTIZATION_TABLES => {
                are_tables(content, |table| Some(1 + 64 * (1 + usize::from(*table.first()? >> 4))))
            }
            RESTART_INTERVAL => content.len() == 2,
            // For applications, and comments.
            0xe0..=0xef | 0xfe => true,
            _ => false,
        };
        let range = marker_at..marker_at + 2 + length;
        is_exact.then_some(Segment { marker: Some(marker), content, range })
    }

    fn is_for_applications(&self) -> bool {
        matches!(self.marker, Some(0xe0..=0xef | 0xfe))
    }
}

/// Tables that follow each other up to the end.
fn are_tables(mut content: &[u8], length: impl Fn(&[u8]) -> Option<usize>) -> bool {
    while !content.is_empty() {
        let Some(rest) = length(content).and_then(|bytes| content.get(bytes..)) else {
            return false;
        };
        content = rest;
    }
    true
}

/// One that ends the data of a scan: others and 0 belong to them.
fn is_marker([first, second]: [u8; 2]) -> bool {
    first == 0xff && !matches!(second, 0 | 0xff) && !RESTARTS.contains(&second)
}

fn scan_bytes(data: &[u8]) -> usize {
    data.windows(2).position(|pair| is_marker([pair[0], pair[1]])).unwrap_or(data.len())
}

impl Frame {
    /// `None` if it is not that of a JPEG, or is one only for a lenient decoder.
    pub(crate) fn read(jpeg: &[u8]) -> Option<Frame> {
        let mut at = jpeg.starts_with(&START_OF_IMAGE).then_some(START_OF_IMAGE.len())?;
        let mut frame = None;
        loop {
            let Segment { marker, content, range } = Segment::at(jpeg, at)?;
            at = range.end;
            match marker {
                Some(marker @ (BASELINE | EXTENDED | PROGRESSIVE)) => {
                    let [_, h1, h0, w1, w0, _, ref components @ ..] = *content else { return None };
                    let samplings: Vec<_> = components
                        .chunks_exact(3)
                        .map(|component| (component[1] >> 4, component[1] & 15))
                        .collect();
                    let possible = 1..=4;
                    if samplings.iter().any(|(h, v)| !possible.contains(h) || !possible.contains(v))
                    {
                        return None;
                    }
                    let already = frame.replace(Frame {
                        width: u16::from_be_bytes([w1, w0]),
                        height: u16::from_be_bytes([h1, h0]),
                        samplings,
                        is_one_pass: marker != PROGRESSIVE,
                    });
                    if already.is_some() {
                        return None;
                    }
                }
                Some(START_OF_SCAN) => {
                    let mut frame = frame?;
                    frame.is_one_pass &= usize::from(content[0]) == frame.samplings.len();
                    return Some(frame);
                }
                Some(_) => {}
                None => return None,
            }
        }
    }
}

/// Takes out what no pixel depends on, in place. What is no longer a JPEG ends there.
pub(crate) fn strip(jpeg: &mut Vec<u8>) {
    let (mut at, mut kept) = (START_OF_IMAGE.len(), START_OF_IMAGE.len());
    let mut has_frame = false;
    while let Some(segment) = Segment::at(jpeg, at) {
        let is_kept = match segment.marker {
            Some(EXIF) => segment.content.starts_with(b"Exif\0\0"),
            // Whether colours are transformed. After the frame it would be for other components.
            Some(ADOBE) => {
                !has_frame
                    && matches!(*segment.content, [b'A', b'd', b'o', b'b', b'e', .., 0 | 1] if segment.content.len() == 12)
            }
            _ => !segment.is_for_applications(),
        };
        has_frame |= matches!(segment.marker, Some(BASELINE | EXTENDED | PROGRESSIVE));
        let range = segment.range;
        at = range.end;
        if is_kept {
            let bytes = range.len();
            jpeg.copy_within(range, kept);
            kept += bytes;
        }
    }
    jpeg.truncate(kept);
    jpeg.extend([0xff, END_OF_IMAGE]);
}
