//! What came of the trials, and whether that was to be.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::trial::{Case, Expected};
use super::watch::{Ended, Outcome};

const MIB: f64 = (1 << 20) as f64;

pub(crate) struct Report {
    is_json: bool,
    title: String,
    failures: usize,
    rows: usize,
}

impl Report {
    pub(crate) fn new(is_json: bool) -> Self {
        Report { is_json, title: String::new(), failures: 0, rows: 0 }
    }

    pub(crate) fn title(&mut self, title: &str) {
        self.title = title.to_owned();
        if !self.is_json {
            println!("\n{title}");
            println!(
                "{:<22} {:<9} {:>9} {:>9} {:>17} {:>9}",
                "trial", "expected", "survived", "killed", "peak MiB (most)", "median s"
            );
        }
    }

    pub(crate) fn case(&mut self, case: &Case, outcomes: &[Outcome]) {
        let expected = match case.expected {
            Expected::Lives => "lives",
            Expected::Killed => "killed",
            Expected::NoThreads => "fails",
            Expected::Any => "either",
        };
        let count = |ended: &Ended| outcomes.iter().filter(|one| one.ended == *ended).count();
        let peaks: Vec<f64> = outcomes.iter().map(|one| one.peak_bytes as f64 / MIB).collect();
        let times = outcomes.iter().map(|one| one.time.as_secs_f64()).collect();
        let most = peaks.iter().copied().fold(0.0, f64::max);
        let complaints: Vec<&String> = outcomes
            .iter()
            .filter(|one| !one.is(case.expected))
            .filter_map(|one| if let Ended::Failed(why) = &one.ended { Some(why) } else { None })
            .collect();
        self.row(&json!({
            "on": self.title,
            "trial": case.title(),
            "expected": expected,
            "is_as_expected": outcomes.iter().all(|one| one.is(case.expected)),
            "runs": outcomes.len(),
            "survived": count(&Ended::Survived),
            "killed": count(&Ended::Killed),
            "median_peak_mib": median(peaks).round(),
            "most_peak_mib": most.round(),
            "median_seconds": median(times),
            "complaints": complaints,
        }));
    }

    /// One line of the table, from here or from the emulated machine.
    pub(crate) fn row(&mut self, row: &Value) {
        let is_as_expected = row["is_as_expected"] == true;
        self.failures += usize::from(!is_as_expected);
        self.rows += 1;
        if self.is_json {
            println!("{row}");
            return;
        }
        let text = |key: &str| row[key].as_str().unwrap_or("?").to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        println!(
            "{:<22} {:<9} {:>9} {:>9} {:>17} {:>9.2}{}",
            text("trial"),
            text("expected"),
            format!("{}/{}", row["survived"], row["runs"]),
            format!("{}/{}", row["killed"], row["runs"]),
            format!("{} ({})", number("median_peak_mib"), number("most_peak_mib")),
            number("median_seconds"),
            if is_as_expected { "" } else { "  NOT AS EXPECTED" },
        );
        for why in row["complaints"].as_array().into_iter().flatten() {
            println!("    {}", why.as_str().unwrap_or("?"));
        }
    }

    pub(crate) fn skip(&mut self, what: &str, why: &str, is_failure: bool) {
        eprintln!("skipped: {what}: {why}");
        self.failures += usize::from(is_failure);
    }

    /// `is_failure`: that nothing was run is one.
    pub(crate) fn end(&self, is_failure: bool) -> ExitCode {
        if self.rows == 0 && is_failure {
            eprintln!("no trial was run");
            return ExitCode::FAILURE;
        }
        if self.failures == 0 {
            return ExitCode::SUCCESS;
        }
        eprintln!("{} not as expected", self.failures);
        ExitCode::FAILURE
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
