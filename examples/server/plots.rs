//! The last minutes as plots.

use std::error::Error;

use admit::MIB;
use plotters::prelude::*;
use plotters::style::full_palette::{GREY, ORANGE, PURPLE, TEAL};

use crate::history::{History, Sample};

type Failed = Box<dyn Error + Send + Sync>;

const SIZE_PIXELS: (u32, u32) = (720, 260);
const COLORS: [RGBColor; 5] = [TEAL, ORANGE, RED, BLUE, PURPLE];

/// What can be plotted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plot {
    Bytes,
    Jobs,
    Waits,
}

/// One line of a plot. A value may be missing at times.
struct Line {
    name: String,
    color: RGBColor,
    values: Vec<Option<f64>>,
}

impl Plot {
    pub(crate) fn named(name: &str) -> Option<Plot> {
        match name {
            "bytes.svg" => Some(Plot::Bytes),
            "jobs.svg" => Some(Plot::Jobs),
            "waits.svg" => Some(Plot::Waits),
            _ => None,
        }
    }

    pub(crate) fn svg(self, samples: &[Sample]) -> Result<String, Failed> {
        let (title, lines) = match self {
            Plot::Bytes => ("memory, MiB", bytes(samples)),
            Plot::Jobs => (
                "jobs on their way, waiting and running",
                of_lanes(samples, |lane| lane.jobs as f64),
            ),
            Plot::Waits => (
                "longest that anybody waits, seconds",
                of_lanes(samples, |lane| lane.oldest_wait.as_secs_f64()),
            ),
        };
        draw(title, &lines)
    }
}

fn bytes(samples: &[Sample]) -> Vec<Line> {
    let line = |name: &str, color, value: fn(&Sample) -> Option<u64>| Line {
        name: name.to_owned(),
        color,
        values: samples.iter().map(|sample| Some(value(sample)? as f64 / MIB as f64)).collect(),
    };
    vec![
        line("capacity", RED, |sample| Some(sample.ledger.capacity_bytes)),
        line("admissible", GREY, |sample| Some(sample.ledger.admissible_bytes())),
        line("resident", BLUE, |sample| sample.resident_bytes),
        line("held by jobs and answers", TEAL, |sample| Some(sample.ledger.held_bytes)),
        line("waiting bodies", ORANGE, |sample| Some(sample.waiting_input_bytes)),
    ]
}

fn of_lanes(samples: &[Sample], value: fn(&crate::history::LaneSample) -> f64) -> Vec<Line> {
    let Some(last) = samples.last() else { return Vec::new() };
    (last.lanes.iter().enumerate())
        .map(|(number, lane)| Line {
            name: lane.name.to_string(),
            color: COLORS[number % COLORS.len()],
            values: samples.iter().map(|sample| sample.lanes.get(number).map(value)).collect(),
        })
        .collect()
}

/// The last sample at the right, at 0 seconds.
fn draw(title: &str, lines: &[Line]) -> Result<String, Failed> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE_PIXELS).into_drawing_area();
        area.fill(&WHITE)?;
        let span = History::LENGTH as f64 * History::EVERY.as_secs_f64();
        let top = lines.iter().flat_map(|line| line.values.iter().flatten());
        let top = top.fold(1.0_f64, |top, value| top.max(*value)) * 1.05;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(28)
            .y_label_area_size(48)
            .build_cartesian_2d(-span..0.0, 0.0..top)?;
        chart.configure_mesh().light_line_style(WHITE).x_desc("seconds ago").draw()?;
        for line in lines {
            let color = line.color;
            let newest = line.values.len().saturating_sub(1);
            let points = line.values.iter().enumerate().filter_map(|(number, value)| {
                let ago = (newest - number) as f64 * History::EVERY.as_secs_f64();
                Some((-ago, (*value)?))
            });
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(line.name.clone())
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(GREY)
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}
