//! Plots a load as SVG: latency by percentile, and over time.

use std::{error::Error, fs, io, ops::Range, path::Path};

use plotters::{
    coord::{Shift, types::RangedCoordf64},
    prelude::*,
};

use super::report::{BenchReport, ClassReport, IntervalReport, Latency, Percentile};
use crate::cli::error::CommandError;

const SIZE: (u32, u32) = (900, 840);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, LogCoord<f64>>>;
type Drawn = Result<(), Box<dyn Error>>;

/// A line and its name.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// A horizontal axis.
struct Axis {
    title: &'static str,
    label: fn(&f64) -> String,
    /// Returns the number of labels of an axis from 0 to this end.
    labels: fn(f64) -> usize,
}

/// Writes the plot of a report to a file.
pub(super) fn write(path: &Path, report: &BenchReport) -> Result<(), CommandError> {
    let mut svg = String::new();
    let drawn = draw(&mut svg, report).map_err(|error| io::Error::other(error.to_string()));
    let written = drawn.and_then(|()| fs::write(path, svg));
    written.map_err(|source| CommandError::WrittenFile {
        path: path.display().to_string(),
        source,
    })
}

fn draw(svg: &mut String, report: &BenchReport) -> Drawn {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(SIZE.1 / 2);
    draw_percentiles(&upper, report)?;
    draw_over_time(&lower, report)?;
    Ok(area.present()?)
}

/// Draws latency by percentile. The horizontal axis is logarithmic: 90 %, 99 % and 99.9 % are equally far apart.
fn draw_percentiles(area: &Area<'_>, report: &BenchReport) -> Drawn {
    // The curve of a single class would be that of all calls.
    let classes = if report.calls.len() > 1 {
        report.calls.as_slice()
    } else {
        &[]
    };
    let all = classes.iter().chain([&report.all]);
    let curves: Vec<Curve> = all.map(Curve::of_class).collect();
    let axis = Axis {
        title: "calls, fastest first; latency counts from when a call was due",
        label: |nines| format!("{}%", 100.0 - 10_f64.powf(2.0 - nines.round())),
        labels: whole_numbers,
    };
    draw_curves(area, &axis, &curves)
}

/// Returns how many whole numbers there are from 0 to the end of an axis.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "few labels"
)]
fn whole_numbers(end: f64) -> usize {
    end as usize + 1
}

fn draw_over_time(area: &Area<'_>, report: &BenchReport) -> Drawn {
    let intervals = &report.over_time;
    let curves = [
        Curve::over_time("p50", intervals, |latency| latency.p50),
        Curve::over_time("p99", intervals, |latency| latency.p99),
        Curve::over_time("max", intervals, |latency| latency.max),
    ];
    let axis = Axis {
        title: "seconds since the start, of when calls were due",
        label: |seconds| format!("{seconds:.1}"),
        labels: |_| 11,
    };
    draw_curves(area, &axis, &curves)
}

impl Curve {
    fn of_class(class: &ClassReport) -> Self {
        // The slowest call, at 100 %, would be at infinity; it is drawn at the share of the calls that are faster.
        #[expect(clippy::cast_precision_loss, reason = "positions of a plot")]
        let least = 1.0 / class.answered.max(1) as f64;
        let nines = |percent: f64| -(1.0 - percent / 100.0).max(least).log10();
        let point = |point: &Percentile| (nines(point.percent), point.ms);
        Self {
            name: class.name(" configurations"),
            points: class.percentiles.iter().map(point).collect(),
        }
    }

    fn over_time(
        name: &str,
        intervals: &[IntervalReport],
        quantile: fn(&Latency) -> Option<f64>,
    ) -> Self {
        // A point is in the middle of its interval. Intervals without answers have none.
        let point = |interval: &IntervalReport| {
            let middle = interval.from_seconds + interval.seconds / 2.0;
            Some((middle, quantile(&interval.latency_ms)?))
        };
        Self {
            name: name.to_owned(),
            points: intervals.iter().filter_map(point).collect(),
        }
    }
}

/// Draws milliseconds on a logarithmic axis over another quantity.
fn draw_curves(area: &Area<'_>, axis: &Axis, curves: &[Curve]) -> Drawn {
    let positions = points(curves).map(|point| point.0);
    // An axis needs a length, even without points.
    let end = positions.fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end, milliseconds(curves).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(axis.title)
        .y_desc("milliseconds")
        .x_labels((axis.labels)(end))
        .x_label_formatter(&axis.label)
        .y_label_formatter(&|milliseconds| format!("{milliseconds}"))
        .light_line_style(WHITE)
        .draw()?;
    draw_lines(&mut chart, curves)
}

fn points(curves: &[Curve]) -> impl Iterator<Item = &(f64, f64)> {
    curves.iter().flat_map(|curve| &curve.points)
}

/// Returns the range of the vertical axis, with space below and above the points.
fn milliseconds(curves: &[Curve]) -> Range<f64> {
    let milliseconds = || points(curves).map(|point| point.1);
    // A logarithmic axis has no place for 0, or for no points at all.
    let least = milliseconds().fold(f64::INFINITY, f64::min);
    let least = least.clamp(1e-3, 1e9);
    let most = milliseconds().fold(least, f64::max);
    least / 1.5..most * 1.5
}

/// Draws the curves and their legend.
fn draw_lines<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, curves: &[Curve]) -> Drawn {
    for (number, curve) in curves.iter().enumerate() {
        let style = Palette99::pick(number).to_rgba().stroke_width(2);
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
            .label(curve.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
