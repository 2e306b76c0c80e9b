//! What honest requests get.

use std::io::{Cursor, Read};

use flate2::read::GzDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, GenericImageView, ImageFormat, Rgb, RgbImage};

use crate::process::Server;

/// Half of it is no text.
fn contents(length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(7);
    (0..length).map(|at| if at % 2 == 0 { b'a' } else { rng.u8(..) }).collect()
}

fn unzipped(answer: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    GzDecoder::new(answer).read_to_end(&mut contents).unwrap();
    contents
}

/// RFC 7914, section 12; of 64 bytes there the first 32 are those of a hash of 32.
#[test]
fn a_hash_is_that_of_the_standard() {
    let server = Server::start();
    let json = br#"{"password": "pleaseletmein", "salt": "SodiumChloride", "log_n": 14}"#;
    let answer = server.post("/hash", json);
    assert_eq!(answer.status, 200);
    let hash = "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2";
    assert_eq!(answer.text(), hash);
    for log_n in [10, 12, 13, 16, 17] {
        let json = format!(r#"{{"password": "", "salt": "s", "log_n": {log_n}}}"#);
        let answer = server.post("/hash", json.as_bytes());
        assert_eq!((answer.status, answer.body.len()), (200, 64), "{log_n}");
    }
}

#[test]
fn gzip_comes_back_as_it_was_with_a_length_and_without() {
    let server = Server::start();
    let contents = contents(3_000_000);
    let answer = server.post("/gzip", &contents);
    assert_eq!((answer.status, unzipped(&answer.body) == contents), (200, true));
    assert!(answer.head.contains("content-type: application/gzip"));

    let mut connection = server.begin_chunked("/gzip");
    for chunk in contents.chunks(70_001) {
        connection.send_chunk(chunk);
    }
    connection.send_chunk(b"");
    let answer = connection.answer();
    assert_eq!((answer.status, unzipped(&answer.body) == contents), (200, true));
    assert_eq!(unzipped(&server.post("/gzip", b"").body), b"");
}

#[test]
fn the_largest_body_is_taken_with_a_length_and_without() {
    let server = Server::start();
    let largest = vec![b'x'; 32 << 20];
    let answer = server.post("/gzip", &largest);
    assert_eq!((answer.status, unzipped(&answer.body).len()), (200, 32 << 20));
    let mut connection = server.begin_chunked("/gzip");
    for chunk in largest.chunks(1 << 20) {
        connection.send_chunk(chunk);
    }
    connection.send_chunk(b"");
    assert_eq!(connection.answer().status, 200);
}

fn picture(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 100])).into()
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Vec::new();
    picture.write_to(&mut Cursor::new(&mut file), format).unwrap();
    file
}

#[test]
fn a_picture_is_made_to_fit_and_a_small_one_is_left_as_it_is() {
    let server = Server::start();
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        for ((width, height), fits) in
            [((1200, 800), (256, 171)), ((300, 900), (85, 256)), ((40, 30), (40, 30))]
        {
            let answer = server.post("/thumbnail", &encoded(&picture(width, height), format));
            assert_eq!(answer.status, 200);
            assert!(answer.head.contains("content-type: image/png"));
            let thumbnail =
                image::load_from_memory_with_format(&answer.body, ImageFormat::Png).unwrap();
            assert_eq!(thumbnail.dimensions(), fits);
        }
    }
}

/// Exif says that the camera was held upright: orientation 6.
#[test]
fn a_picture_is_turned_as_it_says() {
    let server = Server::start();
    let mut file = Vec::new();
    picture(400, 200).write_with_encoder(JpegEncoder::new(&mut file)).unwrap();
    let mut exif = Vec::from(*b"Exif\0\0MM\0*\0\0\0\x08");
    exif.extend([0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]);
    let mut segment = vec![0xff, 0xe1];
    segment.extend(u16::try_from(exif.len() + 2).unwrap().to_be_bytes());
    segment.extend(exif);
    file.splice(2..2, segment);
    let answer = server.post("/thumbnail", &file);
    assert_eq!(image::load_from_memory(&answer.body).unwrap().dimensions(), (128, 256));
}
