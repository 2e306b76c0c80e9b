//! What the service behind `admit` has to do in the trial.

use crate::load::Kind;
use crate::result::Result;

/// A promise that was not kept.
#[derive(Debug)]
pub(crate) struct Unmet {
    pub(crate) what: String,
    /// It is about time, and so also about the machine and who else is on it.
    pub(crate) is_of_time: bool,
}

pub(crate) fn unmet(result: &Result) -> Vec<Unmet> {
    let unmet = |is_of_time| move |what| Unmet { what, is_of_time };
    let counted = counted(result).into_iter().map(unmet(false));
    counted.chain(timed(result).into_iter().map(unmet(true))).collect()
}

/// What must hold wherever it runs.
fn counted(result: &Result) -> Vec<String> {
    let mut unmet = Vec::new();
    let mut expect = |is_met: bool, what: String| {
        if !is_met {
            unmet.push(what);
        }
    };
    expect(result.died_after.is_none() && result.kills == 0, String::from("stays alive"));
    expect(result.peak_mib <= 340.0, format!("peak {:.0} MiB, at most 340", result.peak_mib));
    let answered = result.light_answered * 100.0;
    expect(answered >= 99.5, format!("{answered:.2} % of light answered, at least 99.5"));
    expect(result.lost == 0, format!("{} accepted and lost", result.lost));
    expect(result.wrong == 0, format!("{} wrong answers", result.wrong));
    let (answered, hostile) = (result.hostile_answered, result.hostile);
    expect(
        answered == hostile,
        format!("{answered} of {hostile} hostile requests answered 4xx or 503"),
    );
    let (broken, refused) = (result.broken_uploads, result.refused_uploads);
    expect(
        100 * broken < refused.max(1),
        format!("{broken} of {refused} refused uploads broke, below 1 %"),
    );
    match result.stopped {
        Some((lost, _, ended)) => {
            expect(lost == 0, format!("{lost} accepted and lost when it was stopped"));
            expect(ended, String::from("ends well when it is stopped"));
        }
        None => expect(false, String::from("can be stopped")),
    }
    unmet
}

fn timed(result: &Result) -> Vec<String> {
    let mut unmet = Vec::new();
    let mut expect = |is_met: bool, what: String| {
        if !is_met {
            unmet.push(what);
        }
    };
    let p99 = result.light_ms.p99;
    expect(p99 <= 25.0, format!("light p99 {p99:.1} ms, at most 25"));
    // When the overload has been over for 0.2 s: also while others still have their answers made.
    let (after, alone) = (result.afterwards_ms.median, result.alone_ms.median);
    expect(
        after <= 2.0 * alone,
        format!("light {after:.1} ms after the overload, at most twice the {alone:.1} ms before"),
    );
    let most = result.light_ms.most;
    expect(most <= 100.0, format!("light {most:.1} ms, at most 100"));
    expect(result.useful >= 1.7, format!("useful {:.2} processors, at least 1.7", result.useful));
    for kind in Kind::ALL.into_iter().skip(1) {
        let fair = result.fair[kind as usize];
        expect(
            fair >= 0.5,
            format!("{} has {fair:.2} of its fair share, at least 0.5", kind.lane()),
        );
    }
    let gzip = result.rates[Kind::Gzip as usize];
    expect(gzip >= 0.6, format!("{gzip:.2} gzip/s, at least 0.6"));
    let for_gone = result.for_gone.unwrap_or(1.0) * 100.0;
    expect(
        for_gone < 1.0,
        format!("{for_gone:.2} % of the work for clients that had gone, below 1"),
    );
    unmet
}
