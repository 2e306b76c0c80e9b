//! Samples of several pools, as a table.

use crate::pools::PoolName;
use crate::sample::Sample;

/// Of one figure: lower quartile, median, upper quartile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quartiles([f64; 3]);

impl Quartiles {
    fn of(mut figures: Vec<f64>) -> Quartiles {
        figures.sort_by(f64::total_cmp);
        Quartiles([1, 2, 3].map(|quarter| figures[(figures.len() - 1) * quarter / 4]))
    }

    fn median(self) -> f64 {
        self.0[1]
    }
}

/// Prints a heading.
pub(crate) fn begin(title: &str, figures: &str) {
    println!(
        "\n## {title}\n\n| | {figures} |\n|---|{}",
        "---|".repeat(figures.matches('|').count() + 1)
    );
}

/// Samples each pool in turn, and prints a line for each of them.
pub(crate) fn print(label: &str, rounds: u32, samples: &[(PoolName, Sample)]) {
    let mut figures = vec![Vec::new(); samples.len()];
    let mut order: Vec<usize> = (0..samples.len()).collect();
    for _ in 0..rounds {
        fastrand::shuffle(&mut order);
        for at in &order {
            figures[*at].push(samples[*at].1.take());
        }
    }
    let column = |at: usize, nth: usize| {
        Quartiles::of(figures[at].iter().map(|sample: &Vec<f64>| sample[nth]).collect())
    };
    let first = column(0, 0).median();
    for (at, (pool, _)) in samples.iter().enumerate() {
        let Quartiles([lower, median, upper]) = column(at, 0);
        print!(
            "| {label}, {} | {median:.0} ({lower:.0}-{upper:.0}) | {:.2}x |",
            pool.title(),
            median / first
        );
        for nth in 1..figures[at][0].len() {
            print!(" {:.2} |", column(at, nth).median());
        }
        println!();
    }
}
