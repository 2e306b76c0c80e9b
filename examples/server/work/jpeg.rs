//! What a JPEG says of its size and its making before the picture begins.

/// Of the frame, and of the first scan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) components: u8,
    /// The whole picture comes in one pass, from top to bottom. If not, a decoder has to keep all
    /// coefficients until the last pass.
    pub(crate) is_one_pass: bool,
}

const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const BASELINE: u8 = 0xc0;
const EXTENDED: u8 = 0xc1;
const PROGRESSIVE: u8 = 0xc2;
const START_OF_SCAN: u8 = 0xda;

impl Frame {
    /// Follows the segments (ITU-T T.81, B.1 and B.2) up to the first scan. `None` if there is
    /// anything else in between, also what a lenient decoder would skip.
    pub(crate) fn read(jpeg: &[u8]) -> Option<Frame> {
        let mut rest = jpeg.strip_prefix(&START_OF_IMAGE)?;
        let mut frame = None;
        loop {
            while let [0xff, 0xff, ..] = rest {
                rest = &rest[1..];
            }
            let [0xff, marker, high, low, ..] = *rest else { return None };
            let length = usize::from(u16::from_be_bytes([high, low]));
            let segment = rest.get(4..2 + length)?;
            rest = &rest[2 + length..];
            match marker {
                BASELINE | EXTENDED | PROGRESSIVE => {
                    let [_, h1, h0, w1, w0, components, ..] = *segment else { return None };
                    let already = frame.replace(Frame {
                        width: u16::from_be_bytes([w1, w0]),
                        height: u16::from_be_bytes([h1, h0]),
                        components,
                        is_one_pass: marker != PROGRESSIVE,
                    });
                    if already.is_some() {
                        return None;
                    }
                }
                START_OF_SCAN => {
                    let mut frame = frame?;
                    frame.is_one_pass &= segment.first() == Some(&frame.components);
                    return Some(frame);
                }
                // Tables, comments and what applications have to say.
                0xc4 | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jpeg(marker: u8, scanned: u8) -> Vec<u8> {
        let mut jpeg = START_OF_IMAGE.to_vec();
        jpeg.extend([0xff, 0xe0, 0, 4, 0xff, START_OF_SCAN]);
        jpeg.extend([0xff, 0xff, marker, 0, 11, 8, 0x0f, 0xa0, 0x17, 0x70, 3, 0, 0, 0]);
        jpeg.extend([0xff, START_OF_SCAN, 0, 3, scanned]);
        jpeg
    }

    #[test]
    fn one_pass_is_a_sequential_frame_whose_first_scan_has_all_components() {
        let read = |marker, scanned| Frame::read(&jpeg(marker, scanned)).unwrap().is_one_pass;
        assert!(read(BASELINE, 3) && read(EXTENDED, 3));
        assert!(!read(BASELINE, 1) && !read(PROGRESSIVE, 3));
    }

    #[test]
    fn the_frame_is_read_and_garbage_is_not() {
        let whole = jpeg(BASELINE, 3);
        let frame = Frame::read(&whole).unwrap();
        assert_eq!((frame.width, frame.height, frame.components), (6000, 4000, 3));
        for cut in 0..whole.len() {
            assert_eq!(Frame::read(&whole[..cut]), None, "{cut} bytes");
        }
        for garbage in [&[0xff; 100][..], &[0; 100], b"", &[0xff, 0xd8, 0xff, 0xe0, 0, 0]] {
            assert_eq!(Frame::read(garbage), None);
        }
    }
}
