//! Plots measured run times over scores.

use maud::{Markup, html};

use crate::cli::output::run_time;

/// A measured configuration.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) score: f32,
    pub(super) nanoseconds: i64,
}

/// Maximum number of points; of more, every nth is drawn.
const MAX_POINTS: usize = 2_000;

/// Size of the plot, and its margins left and below, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const BELOW: f64 = 34.0;
const EDGE: f64 = 10.0;

/// The smallest and the largest value of an axis.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (from, to) = (
            values.clone().fold(f64::INFINITY, f64::min),
            values.fold(f64::NEG_INFINITY, f64::max),
        );
        Self { from, to }
    }

    /// Returns the place of a value, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        if self.to > self.from {
            (value - self.from) / (self.to - self.from)
        } else {
            0.5
        }
    }
}

/// Draws the points; those of `named` have names.
pub(super) fn svg(points: &[Point], named: &[(&str, Point)]) -> Markup {
    let all = points.iter().chain(named.iter().map(|(_, point)| point));
    let scores = Axis::of(all.clone().map(|point| f64::from(point.score)));
    let times = Axis::of(all.map(|point| milliseconds(*point)));
    let x = |point: Point| LEFT + scores.place(point.score.into()) * (WIDTH - LEFT - EDGE);
    let y =
        |point: Point| EDGE + (1.0 - times.place(milliseconds(point))) * (HEIGHT - BELOW - EDGE);
    let at = |value: f64| format!("{value:.1}");
    let shown = points
        .iter()
        .step_by(points.len().div_ceil(MAX_POINTS).max(1));
    let time =
        |point: Option<&Point>| point.map_or_else(String::new, |point| run_time(point.nanoseconds));
    let by_time = |one: &&Point, other: &&Point| one.nanoseconds.cmp(&other.nanoseconds);
    html! {
        svg.plot width=(WIDTH) height=(HEIGHT) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label=(format!("Measured run times of {} configurations over their scores", points.len())) {
            path.axis d=(format!("M{LEFT} {EDGE}V{}H{}", HEIGHT - BELOW, WIDTH - EDGE)) {}
            text.end x=(LEFT - 6.0) y=(EDGE + 10.0) { (time(points.iter().max_by(by_time))) }
            text.end x=(LEFT - 6.0) y=(HEIGHT - BELOW) { (time(points.iter().min_by(by_time))) }
            text.start x=(LEFT) y=(HEIGHT - BELOW + 16.0) { (format!("{:.2}", scores.from)) }
            text x=(f64::midpoint(LEFT, WIDTH)) y=(HEIGHT - BELOW + 28.0) { "score" }
            text.end x=(WIDTH - EDGE) y=(HEIGHT - BELOW + 16.0) { (format!("{:.2}", scores.to)) }
            @for point in shown {
                circle.point cx=(at(x(*point))) cy=(at(y(*point))) r="2.5" {
                    title { "score " (format!("{:.4}", point.score)) ", " (run_time(point.nanoseconds)) }
                }
            }
            @for (name, point) in named {
                circle.named cx=(at(x(*point))) cy=(at(y(*point))) r="5" {}
                text.name x=(at(x(*point))) y=(at((y(*point) - 9.0).max(EDGE + 4.0))) { (name) }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "drawn in pixels")]
fn milliseconds(point: Point) -> f64 {
    point.nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_in_the_middle_and_others_between_the_ends() {
        let axis = Axis::of([2.0, 6.0, 3.0].into_iter());
        assert_eq!(
            [2.0, 3.0, 6.0].map(|value| axis.place(value)),
            [0.0, 0.25, 1.0]
        );
        assert_eq!(Axis::of([5.0].into_iter()).place(5.0), 0.5);
    }
}
