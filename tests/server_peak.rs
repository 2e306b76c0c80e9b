//! Compares what the `server` example declares for its jobs with what they allocate, byte for byte.

#![allow(unsafe_code)]

mod counting;

#[allow(dead_code)] // It is the server's, which needs all of it.
#[path = "../examples/server/work/mod.rs"]
mod work;

use std::io::{Cursor, Write};
use std::panic::catch_unwind;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ColorType, DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat};
use jpeg_encoder::{ColorType as JpegColor, Encoder, SamplingFactor};

use counting::peak_of;
use work::gzip;
use work::hash::Password;
use work::picture::Header;

/// No test decodes what needs more.
const MOST_BYTES: u64 = 256 << 20;
const SIZES: [(u16, u16); 5] = [(1, 1), (300, 200), (1501, 999), (4000, 33), (33, 4000)];

fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(3);
    (0..bytes).map(|_| rng.u8(..)).collect()
}

/// The input itself is held by whoever has read it.
#[track_caller]
fn assert_covered(file: &[u8], what: &str) {
    assert!(peak_is_covered(file, what).is_ok(), "{what}");
}

/// Of a file that may be broken; an error is what its sender is told.
#[track_caller]
fn peak_is_covered(file: &[u8], what: &str) -> Result<(), String> {
    let mut header = None;
    let header_peak = peak_of(|| header = Some(Header::read(file)));
    assert!(header_peak <= 4 << 10, "{what}: {header_peak} bytes to read the header");
    let header = header.expect("it was read")?;
    let declared = header.cost(file.len() as u64).working_bytes();
    if declared > MOST_BYTES {
        return Err(String::from("never fits"));
    }
    let mut input = Some(file.to_vec());
    let mut result = Ok(());
    let peak = peak_of(|| {
        result = header.thumbnail(input.take().expect("it is called once")).map(drop);
    });
    assert!(peak <= declared, "{what}: {peak} bytes, and {declared} were declared");
    result
}

/// All pixels are 0.
fn png(
    [width, height]: [u32; 2],
    depth: u8,
    kind: u8,
    is_interlaced: bool,
    chunks: &[([u8; 4], Vec<u8>)],
) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut add = |kind: [u8; 4], content: &[u8]| {
        file.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        let checked = [&kind, content].concat();
        let mut checksum = Crc::new();
        checksum.update(&checked);
        file.extend(checked);
        file.extend(checksum.sum().to_be_bytes());
    };
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    add(*b"IHDR", &[&sides[..], &[depth, kind, 0, 0, is_interlaced.into()]].concat());
    for (kind, content) in chunks {
        add(*kind, content);
    }
    let row = |width: usize, samples: usize| 1 + (width * samples * usize::from(depth)).div_ceil(8);
    let samples = match kind {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    let (width, height) = (width as usize, height as usize);
    // Column and row of the first pixel of a pass, and from one to the next (W3C PNG, 8.1).
    let passes: &[[usize; 4]] = match is_interlaced {
        false => &[[0, 0, 1, 1]],
        true => &[
            [0, 0, 8, 8],
            [4, 0, 8, 8],
            [0, 4, 4, 8],
            [2, 0, 4, 4],
            [0, 2, 2, 4],
            [1, 0, 2, 2],
            [0, 1, 1, 2],
        ],
    };
    let mut bytes = 0;
    for [column, line, columns, lines] in passes {
        let wide = width.saturating_sub(*column).div_ceil(*columns);
        let high = height.saturating_sub(*line).div_ceil(*lines);
        if wide > 0 {
            bytes += row(wide, samples) * high;
        }
    }
    add(*b"IDAT", &zlib(&vec![0; bytes]));
    add(*b"IEND", &[]);
    file
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_png_of_any_kind_needs_no_more_than_is_declared() {
    let colors = [
        (ExtendedColorType::L8, ColorType::L8),
        (ExtendedColorType::La8, ColorType::La8),
        (ExtendedColorType::Rgb8, ColorType::Rgb8),
        (ExtendedColorType::Rgba8, ColorType::Rgba8),
        (ExtendedColorType::L16, ColorType::L16),
        (ExtendedColorType::Rgba16, ColorType::Rgba16),
    ];
    for (width, height) in SIZES {
        for (extended, color) in colors {
            let pixels = usize::from(width) * usize::from(height);
            let mut file = Vec::new();
            PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Sub)
                .write_image(
                    &noise(pixels * usize::from(color.bytes_per_pixel())),
                    u32::from(width),
                    u32::from(height),
                    extended,
                )
                .unwrap();
            assert_covered(&file, &format!("PNG {width} x {height} {color:?}"));
        }
    }
}

#[test]
fn a_jpeg_of_any_kind_needs_no_more_than_is_declared() {
    let samplings = [
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_2,
        SamplingFactor::F_4_1,
        SamplingFactor::F_1_2,
    ];
    let colors = [(JpegColor::Luma, 1), (JpegColor::Rgb, 3), (JpegColor::Ycbcr, 3)];
    for (width, height) in SIZES {
        for (color, samples) in colors {
            for sampling in samplings {
                for is_progressive in [false, true] {
                    let pixels = usize::from(width) * usize::from(height);
                    let mut file = Vec::new();
                    let mut encoder = Encoder::new(&mut file, 80);
                    encoder.set_sampling_factor(sampling);
                    encoder.set_progressive(is_progressive);
                    encoder.encode(&noise(pixels * samples), width, height, color).unwrap();
                    let what = format!(
                        "JPEG {width} x {height} {color:?} {sampling:?} progressive: {is_progressive}"
                    );
                    assert_covered(&file, &what);
                }
            }
        }
    }
}

/// A JPEG of 64 x 48 pixels.
fn jpeg(is_progressive: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 80);
    encoder.set_progressive(is_progressive);
    encoder.encode(&noise(64 * 48 * 3), 64, 48, JpegColor::Ycbcr).unwrap();
    file
}

fn position(file: &[u8], wanted: &[u8]) -> usize {
    file.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

/// Whatever its factors are, also those that nobody uses.
#[test]
fn a_jpeg_of_any_sampling_needs_no_more_than_is_declared() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut decoded = 0;
    for marker in [0xc0, 0xc2] {
        let mut file = jpeg(marker == 0xc2);
        let frame = position(&file, &[0xff, marker]) + 4;
        for _ in 0..300 {
            let sides = [rng.u16(1..60_000), rng.u16(1..300)];
            let (width, height) = (sides[rng.usize(..2)], sides[rng.usize(..2)]);
            file[frame + 1..frame + 3].copy_from_slice(&height.to_be_bytes());
            file[frame + 3..frame + 5].copy_from_slice(&width.to_be_bytes());
            for component in 0..3 {
                file[frame + 7 + 3 * component] = (1 << rng.u8(..3)) << 4 | rng.u8(1..=4);
            }
            let what = format!("{width} x {height}, {:x?}", &file[frame + 5..frame + 15]);
            decoded += u32::from(peak_is_covered(&file, &what).is_ok());
        }
    }
    assert!(decoded >= 100, "{decoded}");
}

/// What applications add may unpack to any size, and a decoder keeps it.
#[test]
fn what_is_no_picture_in_a_file_is_not_kept() {
    let whole = jpeg(false);
    let segment = |marker: u8, content: &[u8]| {
        let length = u16::try_from(2 + content.len()).unwrap();
        [&[0xff, marker][..], &length.to_be_bytes(), content].concat()
    };
    let profile = segment(0xe2, &[&b"ICC_PROFILE\0\x01\x01"[..], &[7; 60_000]].concat());
    // Says that it is the first part of 2 GiB.
    let extension: [&[u8]; 3] = [b"http://ns.adobe.com/xmp/extension/\0", &[b'x'; 32], &[0x7f; 8]];
    let extension = segment(0xe1, &extension.concat());
    let iptc = segment(0xed, &[&b"Photoshop 3.0\0"[..], &[7; 60_000]].concat());
    for (what, segment) in [("profile", profile), ("extension", extension), ("iptc", iptc)] {
        let file = [&whole[..2], &segment.repeat(100), &whole[2..]].concat();
        assert_covered(&file, what);
        let cost = |file: &[u8]| Header::read(file).unwrap().cost(0).working_bytes();
        assert!(cost(&file) <= cost(&whole) + file.len() as u64, "{what}");
    }

    let whole = png([64, 48], 8, 2, false, &[]);
    let mut unpacked = zlib(&vec![7; 64 << 20]);
    let mut profile = b"name\0\0".to_vec();
    profile.append(&mut unpacked);
    let texts = (0..100_000).map(|_| (*b"tEXt", b"a\0".to_vec())).collect::<Vec<_>>();
    for (what, chunks) in [("profile", vec![(*b"iCCP", profile)]), ("texts", texts)] {
        let file = png([64, 48], 8, 2, false, &chunks);
        assert_covered(&file, what);
        let cost = |file: &[u8]| Header::read(file).unwrap().cost(0).working_bytes();
        assert_eq!(cost(&file), cost(&whole), "{what}");
    }
}

/// Long rows, and those that come in several passes.
#[test]
fn a_png_of_any_shape_needs_no_more_than_is_declared() {
    for sides in [[1, 1], [1_000_000, 1], [1_000_000, 3], [1, 100_000], [7, 9], [900, 700]] {
        for (depth, kind) in [(1, 0), (16, 0), (8, 2), (16, 2), (1, 3), (8, 3), (16, 4), (16, 6)] {
            for is_interlaced in [false, true] {
                let palette = (*b"PLTE", vec![9; 6]);
                let alpha = (*b"tRNS", vec![0; if kind == 2 { 6 } else { 2 }]);
                let chunks = match kind {
                    0 | 2 => vec![alpha],
                    3 => vec![palette, alpha],
                    _ => vec![],
                };
                let file = png(sides, depth, kind, is_interlaced, &chunks);
                assert_covered(&file, &format!("{sides:?} {depth} {kind} {is_interlaced}"));
            }
        }
    }
}

/// A header that a decoder reads in another way than it was read for its cost.
#[test]
fn a_file_with_a_broken_header_needs_no_more_than_is_declared() {
    let mut rng = fastrand::Rng::with_seed(7);
    let exif =
        [&[0xff, 0xe0, 0, 6, 1, 2, 3, 4, 0xff, 0xe1, 0, 16][..], b"Exif\0\0\xff\xc0\0\x11\x08abc"];
    let with_exif = [&jpeg(false)[..2], &exif.concat(), &jpeg(false)[2..]].concat();
    let chunks = [(*b"gAMA", vec![0; 4]), (*b"eXIf", vec![1; 20]), (*b"tRNS", vec![0; 6])];
    let png = png([64, 48], 8, 2, false, &chunks);
    let mut decoded = 0;
    for whole in [jpeg(false), jpeg(true), with_exif, png] {
        for _ in 0..4000 {
            let mut file = whole.clone();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(2..file.len().min(700));
                match rng.u8(..4) {
                    0 => file.insert(at, rng.u8(..)),
                    1 => drop(file.remove(at)),
                    2 => file[at] ^= 1 << rng.u8(..8),
                    _ => {
                        file.splice(at..at, [0xff, 0xc0, 0, 17, 8, 16, 0, 16, 0, 3]).for_each(drop)
                    }
                }
            }
            let head = &file[..file.len().min(700)];
            let outcome = catch_unwind(|| peak_is_covered(&file, "broken"));
            let outcome = outcome.unwrap_or_else(|_| panic!("{head:02x?}"));
            decoded += u32::from(outcome.is_ok());
        }
    }
    assert!(decoded >= 500, "{decoded}");
}

/// At some of them the decoder panics.
#[test]
fn a_jpeg_of_four_colors_is_refused_by_its_header() {
    let mut file = Vec::new();
    Encoder::new(&mut file, 80).encode(&noise(400), 10, 10, JpegColor::Cmyk).unwrap();
    assert!(Header::read(&file).unwrap_err().contains("4 components"));
}

/// One pass is what nearly all cameras make, and is not charged for what only several passes need.
#[test]
fn a_picture_in_one_pass_costs_little_more_than_its_pixels() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        let mut file = Vec::new();
        let picture = DynamicImage::new_rgb8(3000, 2000);
        picture.write_to(&mut Cursor::new(&mut file), format).unwrap();
        let input_bytes = file.len() as u64;
        let declared = Header::read(&file).unwrap().cost(input_bytes).working_bytes();
        assert!(declared <= 3000 * 2000 * 3 + input_bytes + (4 << 20), "{format:?}: {declared}");
    }
}

#[test]
fn compression_needs_no_more_than_is_declared() {
    for bytes in [0, 1, 100_000, 3_000_000] {
        for make in [noise, |bytes| vec![b'x'; bytes]] {
            let declared = gzip::cost(bytes as u64).total_bytes().unwrap();
            let peak = peak_of(|| drop(gzip::compress(make(bytes), || true)));
            assert!(peak <= declared, "{bytes}: {peak} bytes, and {declared} were declared");
        }
    }
}

#[test]
fn a_hash_needs_no_more_than_is_declared() {
    for log_n in [10, 13] {
        let json = format!(r#"{{"password": "p", "salt": "s", "log_n": {log_n}}}"#);
        let password = Password::from_json(json.as_bytes()).unwrap();
        let declared = password.cost().unwrap().working_bytes();
        let peak = peak_of(|| drop(password.hash()));
        // The digits.
        assert!(peak <= declared + 64, "{log_n}: {peak} bytes, and {declared} were declared");
    }
}
