//! Plots a load as SVG: latency by percentile, and over time.

use std::{error::Error, fs, io, path::Path};

use plotters::{
    coord::{Shift, types::RangedCoordf64},
    prelude::*,
};

use super::report::{BenchReport, ClassReport, IntervalReport};
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
    let classes = if report.calls.len() > 1 {
        report.calls.as_slice()
    } else {
        &[]
    };
    let curves: Vec<Curve> = classes
        .iter()
        .chain([&report.all])
        .map(Curve::of_class)
        .collect();
    let label = |nines: &f64| format!("{}%", 100.0 - 10_f64.powf(2.0 - nines.round()));
    draw_curves(
        area,
        "calls, fastest first; latency counts from when a call was due",
        &curves,
        &label,
        true,
    )
}

fn draw_over_time(area: &Area<'_>, report: &BenchReport) -> Drawn {
    type Quantile = (&'static str, fn(&IntervalReport) -> Option<f64>);
    let quantiles: [Quantile; 3] = [
        ("p50", |part| part.latency_ms.p50),
        ("p99", |part| part.latency_ms.p99),
        ("max", |part| part.latency_ms.max),
    ];
    let curves = quantiles.map(|(name, quantile)| {
        let point =
            |part: &IntervalReport| Some((part.from_seconds + part.seconds / 2.0, quantile(part)?));
        Curve {
            name: name.to_owned(),
            points: report.over_time.iter().filter_map(point).collect(),
        }
    });
    let label = |seconds: &f64| format!("{seconds:.1}");
    draw_curves(
        area,
        "seconds since the start, of when calls were due",
        &curves,
        &label,
        false,
    )
}

impl Curve {
    fn of_class(class: &ClassReport) -> Self {
        // The slowest call, at 100 %, would be at infinity; it is drawn at the share of the calls that are faster.
        #[expect(clippy::cast_precision_loss, reason = "positions of a plot")]
        let least = 1.0 / class.answered.max(1) as f64;
        let nines = |percent: f64| -(1.0 - percent / 100.0).max(least).log10();
        Self {
            name: class.name(" configurations"),
            points: class
                .percentiles
                .iter()
                .map(|point| (nines(point.percent), point.ms))
                .collect(),
        }
    }
}

/// Draws milliseconds on a logarithmic axis over another quantity.
fn draw_curves(
    area: &Area<'_>,
    horizontal: &str,
    curves: &[Curve],
    label: &dyn Fn(&f64) -> String,
    whole_labels: bool,
) -> Drawn {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let milliseconds = || points().map(|point| point.1);
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    // A logarithmic axis has no place for 0, or for no points at all.
    let least = milliseconds().fold(f64::INFINITY, f64::min);
    let least = least.clamp(1e-3, 1e9);
    let most = milliseconds().fold(least, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right, (least / 1.5..most * 1.5).log_scale())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "few labels"
    )]
    let labels = if whole_labels { right as usize + 1 } else { 11 };
    chart
        .configure_mesh()
        .x_desc(horizontal)
        .y_desc("milliseconds")
        .x_labels(labels)
        .x_label_formatter(label)
        .y_label_formatter(&|milliseconds| format!("{milliseconds}"))
        .light_line_style(WHITE)
        .draw()?;
    draw_lines(&mut chart, curves)
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
