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
