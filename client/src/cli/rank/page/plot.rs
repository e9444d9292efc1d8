//! Plots measured run times over scores.

use maud::{Markup, html};

use crate::cli::output::run_time;

/// A measured configuration.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) score: f32,
    pub(super) nanoseconds: i64,
}

impl Point {
    /// Returns the point of a configuration; `None` if it was not measured.
    pub(super) fn of(score: f32, nanoseconds: Option<i64>) -> Option<Self> {
        // A configuration with a kernel beyond the model's limits has an infinite score, for which
        // an axis has no place.
        let nanoseconds = nanoseconds.filter(|_| score.is_finite())?;
        Some(Self { score, nanoseconds })
    }
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
        Self {
            from: values.clone().fold(f64::INFINITY, f64::min),
            to: values.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Returns the place of a value, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        if self.to > self.from {
            (value - self.from) / (self.to - self.from)
        } else {
            // All values are equal, and the quotient would be 0 / 0.
            0.5
        }
    }
}

/// Places of points in pixels.
struct Frame {
    scores: Axis,
    times: Axis,
}

impl Frame {
    fn of(points: &[Point], named: &[(&str, Point)]) -> Self {
        // A named point may be none of the others, and must be inside the axes as well.
        let all = points.iter().chain(named.iter().map(|(_, point)| point));
        Self {
            scores: Axis::of(all.clone().map(|point| f64::from(point.score))),
            times: Axis::of(all.map(|point| milliseconds(*point))),
        }
    }

    fn x(&self, point: Point) -> f64 {
        LEFT + self.scores.place(point.score.into()) * (WIDTH - LEFT - EDGE)
    }

    fn y(&self, point: Point) -> f64 {
        // Pixels count downwards.
        let from_top = 1.0 - self.times.place(milliseconds(point));
        EDGE + from_top * (HEIGHT - BELOW - EDGE)
    }

    fn circle(&self, point: Point) -> Markup {
        html! {
            circle.point cx=(pixels(self.x(point))) cy=(pixels(self.y(point))) r="2.5" {
                title { "score " (format!("{:.4}", point.score)) ", " (run_time(point.nanoseconds)) }
            }
        }
    }

    fn named(&self, name: &str, point: Point) -> Markup {
        let x = self.x(point);
        let y = self.y(point);
        // The name is above its circle, unless it would leave the drawing there.
        let text_y = (y - 9.0).max(EDGE + 4.0);
        html! {
            circle.named cx=(pixels(x)) cy=(pixels(y)) r="5" {}
            text.name x=(pixels(x)) y=(pixels(text_y)) { (name) }
        }
    }
}

/// Draws the points; those of `named` have names.
pub(super) fn svg(points: &[Point], named: &[(&str, Point)]) -> Markup {
    let frame = Frame::of(points, named);
    let description = format!(
        "Measured run times of {} configurations over their scores",
        points.len()
    );
    // Points that overlap add nothing, but each makes the page slower to show.
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    html! {
        svg.plot width=(WIDTH) height=(HEIGHT) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description) {
            path.axis d=(format!("M{LEFT} {EDGE}V{}H{}", HEIGHT - BELOW, WIDTH - EDGE)) {}
            (labels(points, frame.scores))
            @for point in points.iter().step_by(step) { (frame.circle(*point)) }
            @for (name, point) in named { (frame.named(name, *point)) }
        }
    }
}

/// The ends of the axes.
fn labels(points: &[Point], scores: Axis) -> Markup {
    let times = points.iter().map(|point| point.nanoseconds);
    let ends = [times.clone().max(), times.min()];
    let [slowest, fastest] = ends.map(|time| time.map_or_else(String::new, run_time));
    let below = HEIGHT - BELOW;
    html! {
        text.end x=(LEFT - 6.0) y=(EDGE + 10.0) { (slowest) }
        text.end x=(LEFT - 6.0) y=(below) { (fastest) }
        text.start x=(LEFT) y=(below + 16.0) { (format!("{:.2}", scores.from)) }
        text x=(f64::midpoint(LEFT, WIDTH)) y=(below + 28.0) { "score" }
        text.end x=(WIDTH - EDGE) y=(below + 16.0) { (format!("{:.2}", scores.to)) }
    }
}

fn pixels(value: f64) -> String {
    format!("{value:.1}")
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
