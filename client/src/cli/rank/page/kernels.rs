//! The kernels of fusions, with their predicted run times.

use maud::{Markup, html};

use super::{drawing::Drawing, section::Section};
use crate::cli::{
    explain::Kernels,
    output::{counted, grouped, seconds},
};

/// Maximum number of kernels in a table.
const MAX_ROWS: usize = 40;

/// Width and height of the longest bar in pixels.
const BAR: [f32; 2] = [64.0, 12.0];

pub(super) fn kernels(section: &Section) -> Markup {
    let explanation = &section.explanation;
    let explained = explanation.configurations.iter().zip(&explanation.kernels);
    let all = explanation.kernels.iter().flat_map(|kernels| &kernels.0);
    // One scale for all three, so that bars can be compared between the cards.
    let longest = all.map(|kernel| kernel.seconds).fold(0.0, f32::max);
    html! {
        div.three {
            @for (explained, kernels) in explained { (card(explained.role, kernels, longest)) }
        }
        @if let Some(whole) = &section.whole { (program(whole)) }
    }
}

fn card(role: &str, kernels: &Kernels, longest: f32) -> Markup {
    html! {
        section.card {
            h2 { "Kernels of the " (role) }
            @if kernels.0.is_empty() {
                p.note { "A kernel is too large for the model." }
            } @else {
                p.note { (counted(kernels.0.len(), "kernel")) ", " (seconds(kernels.total())) " predicted." }
                div.scroll { (table(kernels, longest)) }
            }
        }
    }
}

fn program(whole: &Drawing) -> Markup {
    html! {
        section.card {
            h2 { "Program" }
            p.note {
                "Operands are above their users. Filled nodes are computed inside the kernels of their users in the best \
                 configuration, dashed ones in the worst alone; the other framed ones could be."
            }
            div.scroll { (whole.svg()) }
        }
    }
}

fn table(kernels: &Kernels, longest: f32) -> Markup {
    let others = kernels.0.len().saturating_sub(MAX_ROWS);
    html! {
        table {
            thead { tr { th.number { "writes" } th { "opcode" } th.number { "computes" } th.number { "time" } th {} } }
            tbody {
                @for kernel in kernels.0.iter().take(MAX_ROWS) {
                    tr {
                        td.number { (kernel.node) } td { (kernel.opcode) } td.number { (kernel.computed_nodes) }
                        td.number { (seconds(kernel.seconds)) } td { (bar(kernel.seconds / longest)) }
                    }
                }
            }
        }
        @if others > 0 { p.soft { "and " (grouped(others)) " shorter ones" } }
    }
}

fn bar(share: f32) -> Markup {
    let [width, height] = BAR;
    html! {
        svg.bar width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            rect.time x="0" y="1" width=(format!("{:.1}", share * width)) height=(height - 2.0) {}
        }
    }
}
