//! Samples over time, as SVG.

use std::error::Error;

use plotters::prelude::*;

use crate::record::{Record, Sample, file};

const SIZE: (u32, u32) = (900, 900);

type Value = fn(&Sample) -> f64;

/// Draws memory, latency and failures over time.
pub(crate) fn write(record: &Record) {
    draw(record).expect("a plot");
}

fn draw(record: &Record) -> Result<(), Box<dyn Error>> {
    let path = file("soak.svg");
    let area = SVGBackend::new(&path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let charts: [(&str, &[(&str, Value)]); 3] = [
        ("MiB resident", &[("resident", |sample| sample.resident)]),
        (
            "milliseconds",
            &[
                ("p50", |sample| sample.latency[0]),
                ("p99", |sample| sample.latency[1]),
                ("max", |sample| sample.latency[2]),
            ],
        ),
        (
            "calls",
            &[
                ("calls", |sample| sample.calls as f64),
                ("failed", |sample| sample.failed as f64),
            ],
        ),
    ];
    let end = record.samples.last().map_or(1.0, |sample| sample.seconds);
    for (area, (vertical, lines)) in area.split_evenly((charts.len(), 1)).iter().zip(charts) {
        let values = record
            .samples
            .iter()
            .flat_map(|sample| lines.iter().map(|(_, value)| value(sample)));
        let most = values.fold(1.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..end, 0.0..most)?;
        chart
            .configure_mesh()
            .x_desc("seconds")
            .y_desc(vertical)
            .light_line_style(WHITE)
            .draw()?;
        for (number, (name, value)) in lines.iter().enumerate() {
            let style = Palette99::pick(number).to_rgba().stroke_width(2);
            let points = record
                .samples
                .iter()
                .map(|sample| (sample.seconds, value(sample)));
            chart
                .draw_series(LineSeries::new(points, style))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    Ok(area.present()?)
}
