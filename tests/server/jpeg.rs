//! What a JPEG is read as costing.

use crate::work::jpeg::Frame;

const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const BASELINE: u8 = 0xc0;
const EXTENDED: u8 = 0xc1;
const PROGRESSIVE: u8 = 0xc2;
const START_OF_SCAN: u8 = 0xda;

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
