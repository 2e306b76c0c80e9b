//! Compares the presets with what the real crates allocate, byte for byte.

#![allow(unsafe_code)]

use std::io::{self, Write};

use admit::preset::{self, PresetError};
use admit::{GIB, MIB};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

mod counting;

use counting::peak_of;

/// The smallest and largest ratio seen, printed at the end of a test for `--nocapture`.
struct Ratios {
    min: f64,
    max: f64,
}

impl Ratios {
    fn new() -> Ratios {
        Ratios { min: f64::INFINITY, max: 0.0 }
    }

    fn add(&mut self, estimate: u64, peak: u64) -> f64 {
        let ratio = estimate as f64 / peak as f64;
        self.min = self.min.min(ratio);
        self.max = self.max.max(ratio);
        ratio
    }
}

/// A small fixed generator (Knuth's MMIX constants): the data must be the same on every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn text(len: usize) -> Vec<u8> {
    let words = ["admit ", "budget ", "memory ", "job ", "waits ", "runs.\n"];
    let mut noise = Noise(7);
    let mut text = Vec::new();
    while text.len() < len {
        let word = words[noise.next() as usize % words.len()];
        text.extend_from_slice(word.as_bytes());
    }
    text.truncate(len);
    text
}

/// Known trigrams with a random byte after each: many matches of the shortest length at large
/// distances, the costliest kind.
fn short_matches(len: usize) -> Vec<u8> {
    let trigrams = 2_000;
    let mut noise = Noise(11);
    let dictionary = noise.bytes(3 * trigrams);
    let mut data = dictionary.clone();
    while data.len() < len {
        let start = 3 * (noise.next() as usize % trigrams);
        data.extend_from_slice(&dictionary[start..start + 3]);
        data.push(noise.next() as u8);
    }
    data.truncate(len);
    data
}

/// The bytes that deflate's fixed Huffman code gives 9 bits each.
fn high_bytes(len: usize) -> Vec<u8> {
    let mut noise = Noise(13);
    (0..len).map(|_| 144 + (noise.next() % 112) as u8).collect()
}

/// Each byte value about 0.38 times as frequent as the one before: the Huffman tree is deeper
/// than the 15 bits deflate allows, so the code has to be shortened.
fn skewed(len: usize) -> Vec<u8> {
    let mut noise = Noise(17);
    let mut next = || {
        let mut value = 0;
        while value < 40 && noise.next() % 1_000 < 382 {
            value += 1;
        }
        value
    };
    (0..len).map(|_| next()).collect()
}

fn mixed(len: usize) -> Vec<u8> {
    let part = len / 4;
    let mut data = text(part);
    data.extend(Noise(3).bytes(part));
    data.extend(vec![0; part]);
    data.extend(short_matches(len - 3 * part));
    data
}

fn derive_key(log_n: u8, r: u32, p: u32) {
    let params = scrypt::Params::new(log_n, r, p).unwrap();
    let mut key = [0; 32];
    scrypt::scrypt(b"password", b"salt", &params, &mut key).unwrap();
    std::hint::black_box(key);
}

/// Writes in pieces of an odd size, as a request body arrives, and finishes by dropping.
fn compress(mut encoder: impl Write, data: &[u8]) {
    for piece in data.chunks(10_007) {
        encoder.write_all(piece).unwrap();
    }
}

#[test]
fn scrypt_estimate_is_never_below_the_measured_peak_and_at_most_ten_percent_above() {
    // The time grows with N * r * p. Longer runs would only repeat buffers already measured.
    let most_work = 128 * MIB;
    let mut ratios = Ratios::new();
    let mut runs = 0;
    for log_n in 1..=17 {
        for r in [1, 8, 16] {
            for p in [1, 2, 4] {
                let work = u64::from(128 * r * p) << log_n;
                if work > most_work {
                    continue;
                }
                let estimate = preset::scrypt(log_n, r, p).unwrap().working_bytes();
                let peak = peak_of(|| derive_key(log_n, r, p));
                let ratio = ratios.add(estimate, peak);
                runs += 1;
                assert!(
                    (1.0..=1.10).contains(&ratio),
                    "log_n {log_n}, r {r}, p {p}: estimate {estimate}, peak {peak}"
                );
            }
        }
    }
    println!("scrypt: {runs} runs, ratio {:.6} to {:.6}", ratios.min, ratios.max);
}

#[test]
fn scrypt_estimate_covers_many_lanes_and_wide_blocks() {
    for (log_n, r, p) in [(1, 1, 1_000), (1, 1_000, 1), (4, 100, 100), (10, 8, 64)] {
        let estimate = preset::scrypt(log_n, r, p).unwrap().working_bytes();
        let peak = peak_of(|| derive_key(log_n, r, p));
        assert!(
            (peak..=peak + peak / 10).contains(&estimate),
            "log_n {log_n}, r {r}, p {p}: estimate {estimate}, peak {peak}"
        );
    }
}

#[test]
fn scrypt_rejects_hostile_parameters_and_names_them() {
    let max = (1 << 30) - 1;
    for log_n in [0, 64, 65, 128, 255] {
        let error = preset::scrypt(log_n, 8, 1).unwrap_err();
        assert_eq!(error, PresetError::ScryptLogN { log_n });
        let text = format!("scrypt log_n is {log_n}, allowed is 1 to 63");
        assert_eq!(error.to_string(), text);
    }
    for r in [0, max + 1, u32::MAX] {
        let error = preset::scrypt(14, r, 1).unwrap_err();
        assert_eq!(error, PresetError::ScryptR { r });
        let text = format!("scrypt r is {r}, allowed is 1 to 1073741823");
        assert_eq!(error.to_string(), text);
    }
    for p in [0, max + 1, u32::MAX] {
        let error = preset::scrypt(14, 8, p).unwrap_err();
        assert_eq!(error, PresetError::ScryptP { p });
        let text = format!("scrypt p is {p}, allowed is 1 to 1073741823");
        assert_eq!(error.to_string(), text);
    }
    // As `u32` the last two products wrap to numbers that look allowed: 0 and 131,073.
    for (r, p) in [(2, 1 << 29), (1 << 15, 1 << 15), (1 << 16, 1 << 16), (65_537, 65_537)] {
        let error = preset::scrypt(14, r, p).unwrap_err();
        assert_eq!(error, PresetError::ScryptRTimesP { r, p });
        let text = format!("scrypt r * p is {r} * {p}, allowed is 1 to 1073741823");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn scrypt_cost_beyond_u64_is_an_error_and_the_largest_cost_below_is_not() {
    for (log_n, r, p) in [(63, 1, 1), (63, 8, 1), (57, 1, 1), (54, 8, 1), (34, 1 << 23, 1)] {
        let error = preset::scrypt(log_n, r, p).unwrap_err();
        assert_eq!(error, PresetError::ScryptTooLarge { log_n, r, p });
        let named = format!("log_n {log_n}, r {r}, p {p}");
        assert!(error.to_string().contains(&named), "{error}");
    }
    let largest_r = (1 << 30) - 1;
    assert!(preset::scrypt(63, largest_r, 1).is_err());
    assert!(preset::scrypt(56, 1, 1).is_ok());
    assert!(preset::scrypt(53, 8, 1).is_ok());
    assert!(preset::scrypt(26, largest_r, 1).is_ok());
    assert!(preset::scrypt(1, 1, largest_r).is_ok());
}

#[test]
fn scrypt_cost_beyond_32_bits_is_exact() {
    let cost = preset::scrypt(22, 10, 1).unwrap();
    assert_eq!(cost.working_bytes(), 5 * GIB + 2 * 128 * 10);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn scrypt_allows_the_same_parameters_as_the_real_crate() {
    let values = [1, 2, 8, 1 << 10, (1 << 15) - 1, 1 << 15];
    for log_n in 1..=40 {
        for r in values {
            for p in values {
                assert_eq!(
                    preset::scrypt(log_n, r, p).is_ok(),
                    scrypt::Params::new(log_n, r, p).is_ok(),
                    "log_n {log_n}, r {r}, p {p}"
                );
            }
        }
    }
}

#[test]
fn deflate_estimate_is_never_below_the_measured_peak_and_at_most_one_percent_above() {
    let data = mixed(2 * MIB as usize);
    let mut ratios = Ratios::new();
    for level in 0..=9 {
        let estimate = preset::deflate(level).unwrap().working_bytes();
        let compression = Compression::new(level);
        let gzip = peak_of(|| compress(GzEncoder::new(io::sink(), compression), &data));
        let zlib = peak_of(|| compress(ZlibEncoder::new(io::sink(), compression), &data));
        let raw = peak_of(|| compress(DeflateEncoder::new(io::sink(), compression), &data));
        for peak in [gzip, zlib, raw] {
            let ratio = ratios.add(estimate, peak);
            assert!(
                (1.0..=1.01).contains(&ratio),
                "level {level}: estimate {estimate}, peak {peak}"
            );
        }
        println!("deflate {level}: estimate {estimate}, gzip {gzip}, zlib {zlib}, raw {raw}");
    }
    println!("deflate: ratio {:.6} to {:.6}", ratios.min, ratios.max);
}

#[test]
fn deflate_bound_is_never_below_the_compressed_size() {
    // The lengths around which miniz_oxide ends or codes a block in another way: 32 and 48
    // bytes, 31 KiB, the 32 KiB window, and a code buffer full of literals (58 KB).
    let mut lengths: Vec<usize> = (0..=64).collect();
    for edge in [255, 1_000, 31 * 1024, 32_768, 58_247, 65_536, 200_000] {
        lengths.extend(edge - 1..=edge + 1);
    }
    let longest = 200_001;
    let kinds = [
        ("zeros", vec![0; longest]),
        ("text", text(longest)),
        ("noise", Noise(5).bytes(longest)),
        ("short matches", short_matches(longest)),
        ("high bytes", high_bytes(longest)),
        ("skewed bytes", skewed(longest)),
    ];
    let mut worst = 0.0_f64;
    for (kind, data) in &kinds {
        for &len in &lengths {
            let bound = preset::deflate_bound(len as u64).unwrap();
            for level in [0, 1, 2, 6, 9] {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(&data[..len]).unwrap();
                let size = encoder.finish().unwrap().len() as u64;
                assert!(
                    size <= bound,
                    "{len} bytes of {kind} at level {level}: {size} above {bound}"
                );
                if len >= 31 * 1024 {
                    worst = worst.max(size as f64 / len as f64);
                }
            }
        }
    }
    println!("deflate_bound: largest output {worst:.4} times the input");
}

#[test]
fn deflate_bound_is_at_least_that_of_miniz() {
    for n in (0..100_000).chain([1 << 32, 1 << 40]) {
        let miniz = (128 + n * 110 / 100).max(128 + n + (n / (31 * 1024) + 1) * 5);
        assert!(preset::deflate_bound(n).unwrap() >= miniz, "{n} bytes");
    }
}

#[test]
fn deflate_bound_beyond_u64_is_none() {
    let largest = (u64::MAX - 133) / 11 * 10;
    assert!(preset::deflate_bound(largest).is_some());
    assert_eq!(preset::deflate_bound(largest + 20), None);
    assert_eq!(preset::deflate_bound(u64::MAX), None);
}

#[test]
fn deflate_rejects_levels_above_nine_and_names_them() {
    for level in [10, 255, u32::MAX] {
        let error = preset::deflate(level).unwrap_err();
        assert_eq!(error, PresetError::DeflateLevel { level });
        let text = format!("deflate level is {level}, allowed is 0 to 9");
        assert_eq!(error.to_string(), text);
    }
}
