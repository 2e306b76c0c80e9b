//! What is sent, prepared once, and what has to come back.

use std::io::{Cursor, Write};
use std::time::Duration;

use flate2::Crc;
use hyper::body::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ImageReader, RgbImage};

use crate::cpu_time::ThreadTime;
use crate::load::{Hostile, Kind, Wish};
use crate::work::gzip;
use crate::work::hash::Password;
use crate::work::picture::Header;

type Failure = Box<dyn std::error::Error>;

const GZIP_MIB: [usize; 5] = [8, 12, 16, 20, 24];
const PICTURE: (u32, u32) = (6000, 4000);
const THUMBNAIL: (u32, u32) = (256, 171);
const MEASURED: usize = 5;

/// One body, what comes back for it, and what it costs.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) path: &'static str,
    pub(crate) body: Bytes,
    answer: Answer,
    /// Of one processor, without any load: the least of some runs.
    pub(crate) cpu: Duration,
}

#[derive(Clone, Debug)]
enum Answer {
    Hash(String),
    /// The last eight bytes: the checksum and the length of what was compressed.
    Gzip([u8; 8]),
    Picture,
}

impl Prepared {
    /// What a service has to do for it.
    pub(crate) fn work(&self) {
        match self.answer {
            Answer::Hash(_) => {
                let password = Password::from_json(&self.body).expect("it was prepared");
                drop(password.hash());
            }
            Answer::Gzip(_) => drop(gzip::compress(&self.body, || true)),
            Answer::Picture => {
                let header = Header::read(&self.body).expect("it was prepared");
                drop(header.thumbnail(self.body.to_vec()));
            }
        }
    }

    pub(crate) fn is_answered_by(&self, answer: &[u8]) -> bool {
        match &self.answer {
            Answer::Hash(hash) => answer == hash.as_bytes(),
            Answer::Gzip(trailer) => answer.ends_with(trailer),
            Answer::Picture => ImageReader::new(Cursor::new(answer))
                .with_guessed_format()
                .is_ok_and(|reader| reader.into_dimensions().is_ok_and(|size| size == THUMBNAIL)),
        }
    }
}

/// All bodies there are.
#[derive(Debug)]
pub(crate) struct Bodies {
    kinds: [Vec<Prepared>; 5],
}

impl Bodies {
    pub(crate) fn prepare() -> Result<Bodies, Failure> {
        let text = text(*GZIP_MIB.last().expect("there are some") << 20);
        let gzip = GZIP_MIB.iter().map(|mib| prepare_gzip(text.slice(..mib << 20)));
        let picture = picture();
        Ok(Bodies {
            kinds: [
                vec![prepare_hash(10)?],
                vec![prepare_hash(16)?],
                vec![prepare_hash(17)?],
                gzip.collect(),
                vec![prepare_picture(jpeg(&picture)?)?, prepare_picture(png(&picture)?)?],
            ],
        })
    }

    /// For an honest wish.
    pub(crate) fn of(&self, kind: Kind, body: usize) -> &Prepared {
        let bodies = self.of_kind(kind);
        &bodies[body % bodies.len()]
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> &[Prepared] {
        &self.kinds[kind as usize]
    }

    /// The path and the body, if it has an end.
    pub(crate) fn sent(&self, wish: Wish) -> (&'static str, Option<Bytes>) {
        let hash = |json: &'static str| ("/hash", Some(Bytes::from_static(json.as_bytes())));
        match wish {
            Wish::Honest { kind, body } => {
                let prepared = self.of(kind, body);
                (prepared.path, Some(prepared.body.clone()))
            }
            Wish::Hostile(Hostile::Garbage) => hash("{\"password\": [[[[}"),
            Wish::Hostile(Hostile::LogN40) => {
                hash(r#"{"password": "guess", "salt": "salt", "log_n": 40}"#)
            }
            Wish::Hostile(Hostile::LogNBelowZero) => {
                hash(r#"{"password": "guess", "salt": "salt", "log_n": -1}"#)
            }
            Wish::Hostile(Hostile::HugePicture) => ("/thumbnail", Some(huge_picture())),
            Wish::Hostile(Hostile::Endless) => ("/gzip", None),
        }
    }
}

fn measured<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let mut run = || {
        let start = ThreadTime::now();
        let result = work();
        (result, start.elapsed())
    };
    let (result, mut least) = run();
    for _ in 1..MEASURED {
        least = least.min(run().1);
    }
    (result, least)
}

fn prepare_hash(log_n: u8) -> Result<Prepared, Failure> {
    let json = format!(r#"{{"password": "correct horse", "salt": "staple", "log_n": {log_n}}}"#);
    let password = Password::from_json(json.as_bytes())?;
    let (hash, cpu) = measured(|| password.hash());
    Ok(Prepared { path: "/hash", body: json.into(), answer: Answer::Hash(hash), cpu })
}

fn prepare_gzip(body: Bytes) -> Prepared {
    let (_, cpu) = measured(|| gzip::compress(&body, || true));
    let mut crc = Crc::new();
    crc.update(&body);
    let mut trailer = [0; 8];
    let length = u32::try_from(body.len()).expect("a few MiB");
    trailer[..4].copy_from_slice(&crc.sum().to_le_bytes());
    trailer[4..].copy_from_slice(&length.to_le_bytes());
    Prepared { path: "/gzip", body, answer: Answer::Gzip(trailer), cpu }
}

fn prepare_picture(body: Vec<u8>) -> Result<Prepared, Failure> {
    let (thumbnail, cpu) = measured(|| Header::read(&body)?.thumbnail(body.to_vec()));
    let prepared = Prepared { path: "/thumbnail", body: body.into(), answer: Answer::Picture, cpu };
    assert!(prepared.is_answered_by(&thumbnail?), "the trial knows what to expect");
    Ok(prepared)
}

/// Words in a random order, which compress about as text does.
fn text(length: usize) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(1);
    let words: Vec<String> = (0..4000)
        .map(|_| (0..rng.usize(2..10)).map(|_| rng.lowercase()).collect::<String>() + " ")
        .collect();
    let mut text = Vec::with_capacity(length + 10);
    while text.len() < length {
        // Some words are more frequent than others.
        let word = rng.usize(..words.len()).min(rng.usize(..words.len()));
        text.extend_from_slice(words[word].as_bytes());
    }
    text.truncate(length);
    text.into()
}

/// Soft waves, and a little noise in each third row.
fn picture() -> RgbImage {
    let mut rng = fastrand::Rng::with_seed(2);
    let (width, height) = PICTURE;
    let wave: Vec<u8> = (0..width.max(height))
        .map(|at| (f64::from(at) / 97.0).sin().mul_add(90.0, 120.0) as u8)
        .collect();
    RgbImage::from_fn(width, height, |x, y| {
        let noise = if y % 3 == 0 { rng.u8(..8) } else { 0 };
        let (across, down) = (wave[x as usize], wave[y as usize]);
        image::Rgb([across + noise, down + noise, across / 2 + down / 2])
    })
}

fn jpeg(picture: &RgbImage) -> Result<Vec<u8>, Failure> {
    let mut file = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut file, 90))?;
    Ok(file)
}

fn png(picture: &RgbImage) -> Result<Vec<u8>, Failure> {
    let mut file = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Up);
    picture.write_with_encoder(encoder)?;
    Ok(file)
}

fn huge_picture() -> Bytes {
    let mut header = Vec::from(*b"IHDR");
    header.extend(11_000_u32.to_be_bytes());
    header.extend(11_000_u32.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut crc = Crc::new();
    crc.update(&header);
    let mut file = Vec::from(*b"\x89PNG\r\n\x1a\n");
    file.extend(13_u32.to_be_bytes());
    file.extend(header);
    file.extend(crc.sum().to_be_bytes());
    file.write_all(&[0, 0, 0, 0]).expect("a vector takes anything");
    file.extend(*b"IDAT");
    file.into()
}
