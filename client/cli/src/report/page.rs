//! A report as a page: one HTML file, without script and without anything from elsewhere.

use anstream::adapter::strip_str;
use comfy_table::CellAlignment;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::graph_report::GraphReport;
use crate::output::{Section, Table, run_time};

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded or run, whatever names of a graph contain.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Maximum number of points of a plot; of more, every nth is drawn.
const MAX_POINTS: usize = 2_000;

/// Size of a plot, and its margins left and below, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const BELOW: f64 = 34.0;
const EDGE: f64 = 10.0;

/// Returns the page of these reports.
pub(super) fn page(graphs: &[GraphReport]) -> String {
    let title = graphs
        .first()
        .map_or("hlorank", |graph| &graph.ranking.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) " ranked by hlorank" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for graph in graphs {
                    main {
                        h1 { (graph.ranking.name) }
                        p {
                            (graph.ranking.heading())
                            @if let Some(unit) = graph.ranking.unit { "; scores in " (unit) }
                        }
                        @for section in graph.sections() { (section_of(&section)) }
                        @if !graph.points.is_empty() {
                            section {
                                h2 { "Measured run times" }
                                (plot(graph))
                                p { "Every measured configuration; the more the points rise to the right, the better the ranking." }
                            }
                        }
                    }
                }
                footer { "Written by hlorank " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    };
    page.into_string()
}

fn section_of(section: &Section) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            @if let Some(table) = &section.table { div { (table_of(table)) } }
            @for note in &section.notes { p { (strip_str(note)) } }
        }
    }
}

fn table_of(table: &Table) -> Markup {
    let class = |column: usize| match table.columns[column].1 {
        CellAlignment::Right => Some("number"),
        _ => None,
    };
    html! {
        table {
            thead {
                tr { @for (number, (name, _)) in table.columns.iter().enumerate() { th class=[class(number)] { (name) } } }
            }
            tbody {
                @for (_, cells) in &table.rows {
                    tr { @for (number, cell) in cells.iter().enumerate() { td class=[class(number)] { (cell) } } }
                }
            }
        }
    }
}

/// Plots measured run times over scores; the compared configurations have names.
fn plot(graph: &GraphReport) -> Markup {
    let compared = graph.explanation.configurations.iter();
    let named: Vec<_> = compared
        .filter_map(|each| Some((each.role, (each.score, each.run_time_ns?))))
        .collect();
    // A named point may be none of the others, and must be inside the axes as well.
    let all = graph
        .points
        .iter()
        .chain(named.iter().map(|(_, point)| point));
    let scores = ends(all.clone().map(|point| f64::from(point.0)));
    let times = ends(all.map(|point| nanoseconds(point.1)));
    let x = |score: f32| LEFT + place(score.into(), scores) * (WIDTH - LEFT - EDGE);
    // Pixels count downwards.
    let y = |time: i64| {
        let from_top = 1.0 - place(nanoseconds(time), times);
        EDGE + from_top * (HEIGHT - BELOW - EDGE)
    };
    let pixels = |value: f64| format!("{value:.1}");
    let below = HEIGHT - BELOW;
    let drawn = graph.points.iter().map(|point| point.1);
    let [slowest, fastest] = [drawn.clone().max(), drawn.min()].map(|time| time.map(run_time));
    let points = graph.points.len();
    let label = format!("Measured run times of {points} configurations over their scores");
    // Points that overlap add nothing, but each makes the page slower to show.
    let step = points.div_ceil(MAX_POINTS).max(1);
    html! {
        svg width=(WIDTH) height=(HEIGHT) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            path d=(format!("M{LEFT} {EDGE}V{below}H{}", WIDTH - EDGE)) {}
            text.end x=(LEFT - 6.0) y=(EDGE + 10.0) { (slowest.unwrap_or_default()) }
            text.end x=(LEFT - 6.0) y=(below) { (fastest.unwrap_or_default()) }
            text.start x=(LEFT) y=(below + 16.0) { (format!("{:.2}", scores[0])) }
            text x=(f64::midpoint(LEFT, WIDTH)) y=(below + 28.0) { "score" }
            text.end x=(WIDTH - EDGE) y=(below + 16.0) { (format!("{:.2}", scores[1])) }
            @for &(score, time) in graph.points.iter().step_by(step) {
                circle cx=(pixels(x(score))) cy=(pixels(y(time))) r="2.5" {
                    title { "score " (format!("{score:.4}")) ", " (run_time(time)) }
                }
            }
            @for &(name, (score, time)) in &named {
                circle.named cx=(pixels(x(score))) cy=(pixels(y(time))) r="5" {}
                // The name is above its circle, unless it would leave the drawing there.
                text.name x=(pixels(x(score))) y=(pixels((y(time) - 9.0).max(EDGE + 4.0))) { (name) }
            }
        }
    }
}

/// Returns the smallest and the largest value.
fn ends(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let smallest = values.clone().fold(f64::INFINITY, f64::min);
    [smallest, values.fold(f64::NEG_INFINITY, f64::max)]
}

/// Returns the place of a value on an axis with these ends, from 0 to 1.
fn place(value: f64, [from, to]: [f64; 2]) -> f64 {
    if to > from {
        (value - from) / (to - from)
    } else {
        // All values are equal, and the quotient would be 0 / 0.
        0.5
    }
}

#[expect(clippy::cast_precision_loss, reason = "drawn in pixels")]
fn nanoseconds(time: i64) -> f64 {
    time as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_in_the_middle_and_others_between_the_ends() {
        let axis = ends([2.0, 6.0, 3.0].into_iter());
        assert_eq!(
            [2.0, 3.0, 6.0].map(|value| place(value, axis)),
            [0.0, 0.25, 1.0]
        );
        assert_eq!(place(5.0, ends([5.0].into_iter())), 0.5);
    }
}
