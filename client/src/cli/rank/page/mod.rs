//! A page of rankings and what explains them: one HTML file, without script and without anything from elsewhere.

mod drawing;
mod effects;
mod kernels;
mod plot;
mod section;
mod summary;

use std::{io::Write as _, path::Path};

use hlorank_graph::OutputFile;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(super) use self::section::Section;
use super::report::GraphRanking;
use crate::cli::error::CommandError;

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded or run, whatever names of a graph contain.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes the page of these rankings, each with its section.
pub(super) fn write(
    path: &Path,
    graphs: &[GraphRanking],
    sections: &[Section],
) -> Result<(), CommandError> {
    let page = page(graphs, sections).into_string();
    let written = OutputFile::create(path).and_then(|mut file| {
        file.write_all(page.as_bytes())?;
        // Only now an older file is replaced, so nobody opens half a page.
        file.finish()
    });
    written.map_err(|source| CommandError::WrittenFile {
        path: path.display().to_string(),
        source,
    })
}

fn page(graphs: &[GraphRanking], sections: &[Section]) -> Markup {
    let title = graphs.first().map_or("hlorank", |graph| &graph.name);
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                @for (graph, section) in graphs.iter().zip(sections) { (graph_page(graph, section)) }
                footer.soft { "Written by hlorank " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            title { (title) " ranked by hlorank" }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn graph_page(graph: &GraphRanking, section: &Section) -> Markup {
    html! {
        main {
            (summary::heading(graph))
            (summary::configurations(&section.explanation))
            (summary::ranking(graph))
            @if section.explanation.kernels.is_empty() {
                (effects::parts(section))
            } @else {
                (kernels::kernels(section))
            }
            @if !section.points.is_empty() { (measured(section)) }
        }
    }
}

fn measured(section: &Section) -> Markup {
    html! {
        section.card {
            h2 { "Measured run times" }
            p.note { "Every measured configuration; the more the points rise to the right, the better the ranking." }
            div.scroll { (plot::svg(&section.points, &section.named())) }
        }
    }
}
