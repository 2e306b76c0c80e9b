//! What clients want, and when: drawn from a seed, so that every service gets the same.

use std::time::Duration;

use fastrand::Rng;

/// Honest requests come in five kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Light,
    Medium,
    Large,
    Gzip,
    Picture,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] =
        [Kind::Light, Kind::Medium, Kind::Large, Kind::Gzip, Kind::Picture];

    /// The lane of the service under trial, and the word for it in the tables.
    pub(crate) fn lane(self) -> &'static str {
        match self {
            Kind::Light => "light",
            Kind::Medium => "hash-medium",
            Kind::Large => "hash-large",
            Kind::Gzip => "gzip",
            Kind::Picture => "thumbnail",
        }
    }

    /// 60 % are light, and the heavy ones 10 % each.
    fn drawn(rng: &mut Rng) -> Kind {
        match rng.u32(0..10) {
            0..6 => Kind::Light,
            6 => Kind::Medium,
            7 => Kind::Large,
            8 => Kind::Gzip,
            _ => Kind::Picture,
        }
    }
}

/// What is sent by those who mean harm, or have a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hostile {
    /// What is not JSON.
    Garbage,
    LogN40,
    LogNBelowZero,
    /// The header of a PNG of 11000 x 11000, and no picture.
    HugePicture,
    /// Chunks without an end.
    Endless,
}

impl Hostile {
    const ALL: [Hostile; 5] = [
        Hostile::Garbage,
        Hostile::LogN40,
        Hostile::LogNBelowZero,
        Hostile::HugePicture,
        Hostile::Endless,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Which of the prepared bodies of that kind.
    Honest {
        kind: Kind,
        body: usize,
    },
    Hostile(Hostile),
}

/// One client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Duration,
    pub(crate) wish: Wish,
    /// Goes away that long after it has come.
    pub(crate) patience: Duration,
    pub(crate) sends_over: Option<Duration>,
    pub(crate) reads_bytes_per_second: Option<u32>,
}

const PATIENCE: Duration = Duration::from_secs(10);
const LITTLE_PATIENCE: Duration = Duration::from_millis(200);
const SLOW_BODY: Duration = Duration::from_secs(4);
const SLOW_READER_BYTES_PER_SECOND: u32 = 1 << 20;
/// Hostile requests come on top.
const HOSTILE: f64 = 0.05;

/// Poisson arrivals for so long.
pub(crate) fn overload(per_second: f64, lasts: Duration, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::with_seed(seed);
    arrivals(per_second * (1.0 + HOSTILE), lasts, &mut rng, |rng| {
        if rng.f64() < HOSTILE / (1.0 + HOSTILE) {
            return Wish::Hostile(Hostile::ALL[rng.usize(..Hostile::ALL.len())]);
        }
        Wish::Honest { kind: Kind::drawn(rng), body: rng.usize(..) }
    })
}

/// Light requests alone, as many as are in the overload of so many per second, from clients that
/// wait.
pub(crate) fn light(per_second: f64, lasts: Duration, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::with_seed(seed);
    let wish = |rng: &mut Rng| Wish::Honest { kind: Kind::Light, body: rng.usize(..) };
    let mut arrivals = arrivals(per_second * 0.6, lasts, &mut rng, wish);
    for arrival in &mut arrivals {
        arrival.patience = PATIENCE;
        arrival.sends_over = None;
    }
    arrivals
}

fn arrivals(
    per_second: f64,
    lasts: Duration,
    rng: &mut Rng,
    wish: impl Fn(&mut Rng) -> Wish,
) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut seconds = 0.0;
    loop {
        // Exponential gaps make a Poisson process.
        seconds -= (1.0 - rng.f64()).ln() / per_second;
        let at = Duration::from_secs_f64(seconds);
        if at >= lasts {
            return arrivals;
        }
        let wish = wish(rng);
        let one_in_ten = |rng: &mut Rng| rng.u32(0..10) == 0;
        let is_upload = matches!(wish, Wish::Honest { kind: Kind::Gzip | Kind::Picture, .. });
        arrivals.push(Arrival {
            at,
            wish,
            patience: if one_in_ten(rng) { LITTLE_PATIENCE } else { PATIENCE },
            sends_over: (one_in_ten(rng) && is_upload).then_some(SLOW_BODY),
            reads_bytes_per_second: one_in_ten(rng).then_some(SLOW_READER_BYTES_PER_SECOND),
        });
    }
}
