//! The graph, the three configurations, and the ranking.

use maud::{Markup, html};

use super::super::report::{GraphRanking, RankedConfiguration};
use crate::cli::{
    explain::{Explained, Explanation},
    output::{counted, grouped, run_time},
};

/// The columns that not every ranking has.
#[derive(Clone, Copy)]
struct Columns {
    predicted: bool,
    measured: bool,
}

pub(super) fn heading(graph: &GraphRanking) -> Markup {
    html! {
        header {
            h1 { (graph.name) }
            p.soft {
                (graph.kind) ", " (counted(graph.nodes, "node")) ", " (counted(graph.configurations, "configuration"))
                ", model " (graph.model)
                @if let Some(unit) = graph.unit { ", scores in " (unit) }
            }
            (remarks(graph))
            p.hash { "graph " (graph.graph_hash) }
        }
    }
}

fn remarks(graph: &GraphRanking) -> Markup {
    html! {
        @if let Some(drawn) = &graph.drawn { p.soft { (drawn) } }
        @if let Some(learned) = &graph.learned { p.soft { (learned) } }
        @if graph.scored < graph.configurations {
            p.soft { "Only the first " (grouped(graph.scored)) " configurations were scored in time." }
        }
        @for warning in &graph.warnings {
            p.warning { (warning.message) " (" (warning.reason) ")" }
        }
    }
}

pub(super) fn configurations(explanation: &Explanation) -> Markup {
    html! {
        div.three {
            @for explained in &explanation.configurations { (configuration(explained)) }
        }
    }
}

fn configuration(explained: &Explained) -> Markup {
    html! {
        section.card {
            h2 { (explained.role) }
            b.figure { (explained.score_text) }
            p.soft {
                "score"
                @if let Some(number) = explained.number { " of number " (number) }
                @if let Some(time) = explained.run_time_ns { ", measured " strong { (run_time(time)) } }
            }
            p.code { (explained.short) }
        }
    }
}

pub(super) fn ranking(graph: &GraphRanking) -> Markup {
    let columns = Columns {
        predicted: graph.ranking.iter().any(|row| row.predicted.is_some()),
        measured: graph.ranking.iter().any(|row| row.run_time_ns.is_some()),
    };
    html! {
        section.card {
            h2 { "Ranking" }
            p.note { "The configurations that the model predicts to be fastest, lowest score first." }
            div.scroll {
                table {
                    thead { (columns.header()) }
                    tbody { @for row in &graph.ranking { (columns.row(row)) } }
                }
            }
        }
    }
}

impl Columns {
    fn header(self) -> Markup {
        html! {
            tr {
                th.number { "rank" } th.number { "number" } th.number { "score" }
                @if self.predicted { th.number { "predicted" } }
                @if self.measured { th.number { "measured" } th.number { "vs default" } }
                th { "configuration" }
            }
        }
    }

    fn row(self, row: &RankedConfiguration) -> Markup {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        html! {
            tr {
                td.number { (row.rank) } td.number { (row.number) } td.number { (row.score_text) }
                @if self.predicted { td.number { (or_dash(row.predicted.map(|time| time.to_string()))) } }
                @if self.measured {
                    td.number { (or_dash(row.run_time_ns.map(run_time))) }
                    td.number { (or_dash(row.over_default.map(|ratio| format!("{ratio:.2}x")))) }
                }
                td.code { (row.short) }
            }
        }
    }
}
