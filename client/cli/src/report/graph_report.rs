//! The value that all forms of a report show, and its form as text.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::explanation::Explanation;
use crate::{output::Section, rank::GraphRanking};

/// The reports of a file.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) graphs: Vec<GraphReport>,
}

/// The report of one graph.
#[derive(Debug, Serialize)]
pub(super) struct GraphReport {
    #[serde(flatten)]
    pub(super) ranking: GraphRanking,
    pub(super) explanation: Explanation,
    /// Score, and run time in nanoseconds, of each measured configuration.
    #[serde(skip)]
    pub(super) points: Vec<(f32, i64)>,
}

impl GraphReport {
    /// Returns the ranking and its explanation as tables.
    pub(super) fn sections(&self) -> Vec<Section> {
        let ranking = Section {
            title: "Ranking".to_owned(),
            table: Some(self.ranking.table()),
            notes: self.ranking.remarks(),
        };
        let mut sections = vec![ranking];
        sections.extend(self.explanation.sections());
        sections
    }
}

impl Display for FileReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, graph) in self.graphs.iter().enumerate() {
            let gap = if position > 0 { "\n" } else { "" };
            writeln!(formatter, "{gap}{}", graph.ranking.heading())?;
            for section in graph.sections() {
                write!(formatter, "\n{section}")?;
            }
        }
        Ok(())
    }
}
