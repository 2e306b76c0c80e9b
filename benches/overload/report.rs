//! The table.

use crate::load::Kind;
use crate::result::{Latency, Result};

pub(crate) const HEAD: &str = "\
| service | alive | peak MiB | light answered | light p50, p99, max ms | useful work | accepted but lost | for clients that had gone | hostile answered | uploads broken | stopped: lost |
|---|---|---|---|---|---|---|---|---|---|---|";

pub(crate) fn row(name: &str, result: &Result) -> String {
    let alive = match (result.died_after, result.kills) {
        (None, 0) => String::from("yes"),
        (None, kills) => format!("{kills} kills"),
        (Some(after), kills) => format!(
            "{} after {:.1} s",
            if kills > 0 { "OOM-killed" } else { "ended" },
            after.as_secs_f64()
        ),
    };
    let for_gone =
        result.for_gone.map_or(String::from("-"), |part| format!("{:.2} %", part * 100.0));
    let stopped = match result.stopped {
        None => String::from("-"),
        Some((lost, all, true)) => format!("{lost} of {all}"),
        Some((lost, all, false)) => format!("{lost} of {all}, ended badly"),
    };
    format!(
        "| {name} | {alive} | {:.0} | {:.2} % | {} | {:.2} | {} | {for_gone} | {} of {} | {} of {} | {stopped} |",
        result.peak_mib,
        result.light_answered * 100.0,
        latency(result.light_ms),
        result.useful,
        result.lost,
        result.hostile_answered,
        result.hostile,
        result.broken_uploads,
        result.refused_uploads,
    )
}

/// What has no column.
pub(crate) fn details(name: &str, result: &Result, two_threads: f64) -> String {
    let kinds: Vec<String> = Kind::ALL
        .into_iter()
        .skip(1)
        .map(|kind| {
            let (rate, fair) = (result.rates[kind as usize], result.fair[kind as usize]);
            format!("{} {rate:.2}/s ({fair:.2} of its fair share)", kind.lane())
        })
        .collect();
    let idle = result.idle.map_or(String::from("?"), |idle| format!("{idle:.2}"));
    let mut text = format!(
        "{name}: {}; light alone {} ms, after the overload {} ms; just before it two threads got \
        {two_threads:.2} processors' worth of the heavy work done, with nothing else to do; of the \
        processors the client took {:.2}, and {idle} were idle",
        kinds.join(", "),
        latency(result.alone_ms),
        latency(result.afterwards_ms),
        result.client_cpu,
    );
    if let Some(loss) = &result.first_loss {
        text += &format!("\n  first loss: {loss}");
    }
    text
}

fn latency(latency: Latency) -> String {
    if latency.median.is_nan() {
        return String::from("-");
    }
    format!("{:.1}, {:.1}, {:.1}", latency.median, latency.p99, latency.most)
}
