//! What a JPEG is read as costing.

use crate::work::jpeg::Frame;

const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const BASELINE: u8 = 0xc0;
const EXTENDED: u8 = 0xc1;
const PROGRESSIVE: u8 = 0xc2;
const START_OF_SCAN: u8 = 0xda;

fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(2 + content.len()).unwrap();
    [&[0xff, marker][..], &length.to_be_bytes(), content].concat()
}

/// 6000 x 4000, with other segments before the frame.
fn jpeg(marker: u8, others: &[u8], scanned: u8) -> Vec<u8> {
    let components = [1, 0x21, 0, 2, 0x11, 0, 3, 0x11, 0];
    let frame = [&[8, 0x0f, 0xa0, 0x17, 0x70, 3][..], &components].concat();
    let scan = [&[scanned][..], &[0].repeat(2 * usize::from(scanned)), &[0, 63, 0]].concat();
    let segments = [&[0xff][..], &segment(marker, &frame), &segment(START_OF_SCAN, &scan)].concat();
    [&START_OF_IMAGE[..], others, &segments].concat()
}

#[test]
fn one_pass_is_a_sequential_frame_whose_first_scan_has_all_components() {
    let read = |marker, scanned| Frame::read(&jpeg(marker, &[], scanned)).unwrap().is_one_pass;
    assert!(read(BASELINE, 3) && read(EXTENDED, 3));
    assert!(!read(BASELINE, 1) && !read(PROGRESSIVE, 3));
}

#[test]
fn the_frame_is_read_and_garbage_is_not() {
    let whole = jpeg(BASELINE, &segment(0xe0, &[0xff, START_OF_SCAN]), 3);
    let frame = Frame::read(&whole).unwrap();
    assert_eq!((frame.width, frame.height), (6000, 4000));
    assert_eq!(frame.samplings, [(2, 1), (1, 1), (1, 1)]);
    for cut in 0..whole.len() {
        assert_eq!(Frame::read(&whole[..cut]), None, "{cut} bytes");
    }
    for garbage in [&[0xff; 100][..], &[0; 100], b"", &[0xff, 0xd8, 0xff, 0xe0, 0, 0]] {
        assert_eq!(Frame::read(garbage), None);
    }
}

/// What is over would be searched for a header, which may say something else.
#[test]
fn a_segment_that_is_longer_or_shorter_than_its_content_is_not_read() {
    let tables = [(0xdb, 65), (0xdb, 130), (0xdd, 2), (0xc4, 17), (0xc4, 34)];
    for (marker, bytes) in tables {
        let read =
            |bytes: usize| Frame::read(&jpeg(BASELINE, &segment(marker, &vec![0; bytes]), 3));
        assert!(read(bytes).is_some(), "{marker:x} {bytes}");
        assert!(read(bytes + 1).is_none() && read(bytes - 1).is_none(), "{marker:x} {bytes}");
    }
    assert!(Frame::read(&jpeg(BASELINE, &segment(BASELINE, &[0; 16]), 3)).is_none());
    assert!(Frame::read(&jpeg(BASELINE, &segment(0xc3, &[0; 16]), 3)).is_none());
}
