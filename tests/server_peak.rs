//! Compares what the `server` example declares for its jobs with what they allocate, byte for byte.

#![allow(unsafe_code)]

mod counting;

#[allow(dead_code)] // It is the server's, which needs all of it.
#[path = "../examples/server/work/mod.rs"]
mod work;

use std::io::Cursor;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ColorType, DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat};
use jpeg_encoder::{ColorType as JpegColor, Encoder, SamplingFactor};

use counting::peak_of;
use work::gzip;
use work::hash::Password;
use work::picture::Header;

const SIZES: [(u16, u16); 5] = [(1, 1), (300, 200), (1501, 999), (4000, 33), (33, 4000)];

fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(3);
    (0..bytes).map(|_| rng.u8(..)).collect()
}

/// The input itself is held by whoever has read it.
#[track_caller]
fn assert_covered(file: &[u8], what: &str) {
    let mut header = None;
    let header_peak = peak_of(|| header = Some(Header::read(file).unwrap()));
    let header = header.expect("it was read");
    assert!(header_peak <= 256 << 10, "{what}: {header_peak} bytes to read the header");
    let declared = header.cost(file.len() as u64).working_bytes();
    let peak = peak_of(|| drop(header.thumbnail(file).unwrap()));
    assert!(peak <= declared, "{what}: {peak} bytes, and {declared} were declared");
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
