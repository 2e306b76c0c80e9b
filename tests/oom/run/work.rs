//! The jobs of the trials. They are real: what they allocate is theirs, not the trial's.

use std::hint::black_box;
use std::io::Write;

use admit::{Cost, KIB, MIB, preset};
use flate2::Compression;
use flate2::write::GzEncoder;
use scrypt::{Params, scrypt};

use super::options::Scale;
use super::trial::Name;

pub(crate) struct Job {
    pub(crate) cost: Cost,
    pub(crate) work: Box<dyn FnOnce() -> Vec<u8> + Send>,
}

/// The jobs of a trial, made one by one as they are asked for.
pub(crate) fn jobs(name: Name, scale: Scale, seed: u64) -> Box<dyn Iterator<Item = Job> + Send> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut shuffled = |sizes: Vec<u8>| -> Box<dyn Iterator<Item = Job> + Send> {
        let mut sizes = sizes;
        random.shuffle(&mut sizes);
        Box::new(sizes.into_iter().map(move |log_n| hash(scale.log(log_n))))
    };
    let many = |count: usize, log_n: u8| vec![log_n; scale.jobs(count)];
    match name {
        Name::Scrypt32 => shuffled(many(32, 15)),
        Name::Scrypt64 => shuffled(many(48, 16)),
        Name::Scrypt128 => shuffled(many(12, 17)),
        Name::Mixed => shuffled([many(16, 14), many(16, 16), many(16, 17)].concat()),
        Name::Lowered => shuffled(many(24, 16)),
        Name::Spread => shuffled((6..=16).flat_map(|log_n| many(12, log_n)).collect()),
        Name::Pids => shuffled(many(32, 10)),
        Name::Gzip => {
            // A copy is made much faster than it is compressed, as a producer reads its files.
            let input = half_random(scale.bytes(MIB));
            Box::new((0..320).map(move |_| compress(input.clone())))
        }
        Name::Kept => Box::new((0..100).map(move |_| picture(scale.bytes(8 * MIB)))),
        Name::Buffers => {
            let first = (0..scale.jobs(96)).map(move |_| buffers(scale.bytes(7 * MIB)));
            Box::new(first.chain(many(12, 17).into_iter().map(move |log_n| hash(scale.log(log_n)))))
        }
        Name::Parse => {
            let blocks = (0..scale.jobs(64)).map(move |_| parse(scale.bytes(12 * MIB)));
            Box::new(
                blocks.chain(many(16, 16).into_iter().map(move |log_n| hash(scale.log(log_n)))),
            )
        }
    }
}

/// A few buffers, as filters and codecs have them.
fn buffers(bytes: u64) -> Job {
    let work = move || {
        let bytes = usize::try_from(bytes).expect("it fits");
        black_box(vec![vec![1_u8; bytes]; 2]);
        Vec::new()
    };
    Job { cost: Cost::new(2 * bytes + 64 * KIB), work: Box::new(work) }
}

fn hash(log_n: u8) -> Job {
    let cost = preset::scrypt(log_n, 8, 1).expect("valid");
    let work = move || {
        let params = Params::new(log_n, 8, 1).expect("valid");
        let mut hash = vec![0; 32];
        scrypt(b"password", b"salt", &params, &mut hash).expect("32 bytes");
        hash
    };
    Job { cost, work: Box::new(work) }
}

/// Bytes that compress by about a half.
fn half_random(bytes: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut input = vec![0; usize::try_from(bytes).expect("it fits")];
    for part in input.chunks_mut(64) {
        let half = part.len() / 2;
        random.fill(&mut part[..half]);
    }
    input
}

fn compress(input: Vec<u8>) -> Job {
    let bytes = input.len() as u64;
    let output_bytes = preset::deflate_bound(bytes).expect("it fits");
    let state = preset::deflate(1).expect("valid").working_bytes();
    let work = move || {
        let output = Vec::with_capacity(usize::try_from(output_bytes).expect("it fits"));
        let mut encoder = GzEncoder::new(output, Compression::new(1));
        encoder.write_all(&input).expect("into memory");
        let output = encoder.finish().expect("into memory");
        output[..32].to_vec()
    };
    Job { cost: Cost::new(state + output_bytes).input(bytes), work: Box::new(work) }
}

/// A result that is as large as the work.
fn picture(bytes: u64) -> Job {
    let work = move || vec![1; usize::try_from(bytes).expect("it fits")];
    Job { cost: Cost::new(bytes), work: Box::new(work) }
}

/// Many small blocks, one in 5000 of which stays for good.
fn parse(bytes: u64) -> Job {
    let work = move || {
        let blocks: Vec<_> =
            (0..bytes / 272).map(|n| vec![1_u8; 32 + (n as usize * 97 + 13) % 480]).collect();
        black_box(&blocks);
        for (number, block) in blocks.into_iter().enumerate() {
            if number % 5000 == 2500 {
                std::mem::forget(block);
            }
        }
        Vec::new()
    };
    Job { cost: Cost::new(bytes + bytes / 4 + 64 * KIB), work: Box::new(work) }
}
