//! What segments and bounds do to the score, with drawings.

use maud::{Markup, html};

use super::{drawing::Drawing, section::Section};
use crate::cli::{
    explain::{Explanation, Part, effect},
    output::{counted, grouped},
};

/// Maximum number of rows in the table of parts.
const MAX_ROWS: usize = 200;

/// Width and height of a bar in pixels.
const BAR: [f64; 2] = [120.0, 12.0];

pub(super) fn parts(section: &Section) -> Markup {
    let explanation = &section.explanation;
    html! {
        (effects(explanation))
        @if let Some(whole) = &section.whole { (kernel(whole)) }
        @if section.parts.iter().any(Option::is_some) { (drawings(explanation, &section.parts)) }
    }
}

fn effects(explanation: &Explanation) -> Markup {
    let title = if explanation.kind_of_part == "segment" {
        "Segments"
    } else {
        "Bounds"
    };
    html! {
        section.card {
            h2 { (title) }
            @if explanation.parts.is_empty() {
                p.note { "No single " (explanation.kind_of_part) " explains how the three differ." }
            } @else {
                p.note { (explanation.meaning()) }
                div.scroll { (table(explanation)) }
                (others(explanation))
            }
        }
    }
}

fn kernel(whole: &Drawing) -> Markup {
    html! {
        section.card {
            h2 { "Kernel" }
            p.note { "Operands are above their users." }
            div.scroll { (whole.svg()) }
        }
    }
}

fn drawings(explanation: &Explanation, parts: &[Option<Drawing>]) -> Markup {
    html! {
        section.card {
            h2 { "Segments as drawings" }
            p.note {
                "The " (counted(parts.iter().flatten().count(), "segment"))
                " with the largest effects; operands are above their users. Filled nodes are set by the best configuration, \
                 dashed ones by the worst alone, and the other framed ones could be set."
            }
            @for (part, drawing) in explanation.parts.iter().zip(parts) {
                @if let Some(drawing) = drawing { (figure(explanation, part, drawing)) }
            }
        }
    }
}

fn table(explanation: &Explanation) -> Markup {
    let sizes = explanation
        .parts
        .iter()
        .flat_map(|part| part.effects.map(f64::abs));
    // One scale for the whole table, so that bars can be compared between rows and columns.
    let largest = sizes.fold(0.0, f64::max);
    let is_bound = explanation.kind_of_part == "bound";
    let roles = roles(explanation);
    html! {
        table {
            thead {
                tr {
                    th { (explanation.kind_of_part) }
                    @for role in roles { th.number { (role) } th {} }
                    @if is_bound { th { "best, " (roles[1]) ", worst" } } @else { th.number { "nodes" } }
                }
            }
            tbody {
                @for part in explanation.parts.iter().take(MAX_ROWS) { (row(part, largest, is_bound)) }
            }
        }
    }
}

fn row(part: &Part, largest: f64, is_bound: bool) -> Markup {
    html! {
        tr {
            td { (part.name) }
            @for value in part.effects { td.number { (effect(value)) } td { (bar(value, largest)) } }
            @if is_bound {
                td { @for choice in &part.choices { (choice.values.join(", ")) } }
            } @else {
                td.number { (part.nodes.len()) }
            }
        }
    }
}

/// What the best, the reference and the worst are called.
fn roles(explanation: &Explanation) -> [&'static str; 3] {
    let explained = explanation.configurations.each_ref();
    explained.map(|explained| explained.role)
}

/// Draws an effect: to the left if it lowers the score, to the right if it raises it.
fn bar(effect: f64, largest: f64) -> Markup {
    let [width, height] = BAR;
    let middle = width / 2.0;
    // If no part changes the score, all bars are empty instead of 0 / 0 long.
    let share = if largest > 0.0 { effect / largest } else { 0.0 };
    let length = share.abs() * middle;
    let start = middle + share.min(0.0) * middle;
    let class = if effect < 0.0 { "lower" } else { "higher" };
    html! {
        svg.bar width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            rect class=(class) x=(format!("{start:.1}")) y="1" width=(format!("{length:.1}")) height=(height - 2.0) {}
            path.axis d=(format!("M{middle} 0V{height}")) {}
        }
    }
}

fn others(explanation: &Explanation) -> Markup {
    let others = explanation.parts.len().saturating_sub(MAX_ROWS) + explanation.left_out;
    html! {
        @if others > 0 { p.soft { "and " (grouped(others)) " others with smaller effects" } }
        (combined(explanation))
    }
}

fn combined(explanation: &Explanation) -> Markup {
    // A model is no sum of its parts, so single effects need not add up to the difference.
    let [(best, with_best), (worst, with_worst)] = explanation.combined();
    html! {
        p.soft {
            "From the " (explanation.configurations[1].role) " to the best, the score changes by " (effect(best))
            ", and to the worst by " (effect(worst)) ". Of these, " (effect(with_best)) " and " (effect(with_worst))
            " are due to several " (explanation.kind_of_part) "s together."
        }
    }
}

fn figure(explanation: &Explanation, part: &Part, drawing: &Drawing) -> Markup {
    html! {
        figure {
            figcaption {
                strong { "Segment " (part.name) }
                ": best " (effect(part.effects[0])) ", worst " (effect(part.effects[2]))
            }
            div.scroll { (drawing.svg()) }
            div.scroll { (choices(part, roles(explanation))) }
        }
    }
}

fn choices(part: &Part, roles: [&str; 3]) -> Markup {
    html! {
        table {
            thead { tr { th.number { "node" } th { "instruction" } @for role in roles { th { (role) } } } }
            tbody {
                @for choice in &part.choices {
                    tr {
                        td.number { @if let Some(node) = choice.node { (node) } }
                        td { (choice.what) }
                        @for value in &choice.values { td.code { (value) } }
                    }
                }
            }
        }
    }
}
