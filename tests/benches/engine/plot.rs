//! Curves and bars as SVG files in `target/figures`.

use std::error::Error;

use hlorank_tests::prelude::*;
use plotters::prelude::*;

const SIZE: (u32, u32) = (820, 420);

/// Points of positive numbers.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Bar whose parts add up.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) parts: Vec<f64>,
}

impl Curve {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            points: Vec::new(),
        }
    }
}

/// Draws seconds over `horizontal`, both on logarithmic axes.
pub(crate) fn log_log(name: &str, horizontal: &str, curves: &[Curve]) {
    draw_log_log(&file(name), horizontal, curves).expect("a plot");
}

/// Draws one bar each, with the share of the time that each part takes.
pub(crate) fn bars(name: &str, parts: &[&str], all: &[Bar]) {
    draw_bars(&file(name), parts, all).expect("a plot");
}

fn file(name: &str) -> PathBuf {
    let folder = repository("target/figures");
    fs::create_dir_all(&folder).expect("target can be written");
    folder.join(format!("{name}.svg"))
}

fn draw_log_log(path: &PathBuf, horizontal: &str, curves: &[Curve]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let range = |value: fn(&(f64, f64)) -> f64| {
        let least = points().map(value).fold(f64::INFINITY, f64::min);
        let most = points().map(value).fold(0.0, f64::max);
        (least / 1.5..most * 1.5).log_scale()
    };
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(range(|point| point.0), range(|point| point.1))?;
    chart
        .configure_mesh()
        .x_desc(horizontal)
        .y_desc("seconds")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (number, curve) in curves.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        let style = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), style).point_size(3))?
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(area.present()?)
}

fn draw_bars(path: &PathBuf, parts: &[&str], all: &[Bar]) -> Result<(), Box<dyn Error>> {
    const LEFT: i32 = 330;
    const RIGHT: i32 = 740;
    const STEP: i32 = 34;
    let height = STEP * i32::try_from(all.len() + 2)?;
    let area = SVGBackend::new(path, (SIZE.0, u32::try_from(height)?)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = ("sans-serif", 14).into_font();
    for (x, (number, part)) in (LEFT..).step_by(76).zip(parts.iter().enumerate()) {
        area.draw(&Rectangle::new(
            [(x, 12), (x + 12, 24)],
            Palette99::pick(number).filled(),
        ))?;
        area.draw(&Text::new(*part, (x + 16, 12), text.clone()))?;
    }
    for (number, bar) in (1..).zip(all) {
        let (top, total) = (number * STEP + 6, bar.parts.iter().sum::<f64>());
        area.draw(&Text::new(bar.name.clone(), (10, top + 4), text.clone()))?;
        let mut before = 0.0;
        for (part, value) in bar.parts.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "pixels of a plot")]
            let x = |sum: f64| LEFT + (f64::from(RIGHT - LEFT) * sum / total) as i32;
            let corners = [(x(before), top), (x(before + value), top + STEP - 12)];
            area.draw(&Rectangle::new(corners, Palette99::pick(part).filled()))?;
            before += value;
        }
        area.draw(&Text::new(
            format!("{total:.2} ms"),
            (RIGHT + 6, top + 4),
            text.clone(),
        ))?;
    }
    Ok(area.present()?)
}
