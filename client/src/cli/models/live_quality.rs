//! How well versions rank what clients measured.

use std::fmt::{self, Formatter};

use hlorank_client::v1;
use serde::Serialize;

use crate::cli::output::{Align, Table, grouped, or_dash};

/// How well a version ranks what was measured on a target.
#[derive(Debug, Serialize)]
pub(super) struct LiveQuality {
    target: String,
    graphs: usize,
    configurations: usize,
    kendall_tau: f64,
    ordered_pairs: f64,
    top_pick_regret: f64,
    predicted_time_ratio: Option<f64>,
    time_error_ratio: Option<f64>,
}

impl From<v1::LiveQuality> for LiveQuality {
    fn from(quality: v1::LiveQuality) -> Self {
        Self {
            target: quality.target,
            graphs: quality.graphs as usize,
            configurations: quality.configs as usize,
            kendall_tau: quality.kendall_tau,
            ordered_pairs: quality.ordered_pairs,
            top_pick_regret: quality.top_pick_regret,
            predicted_time_ratio: quality.predicted_time_ratio,
            time_error_ratio: quality.time_error_ratio,
        }
    }
}

const COLUMNS: [(&str, Align); 8] = [
    ("on reported measurements", Align::Left),
    ("target", Align::Left),
    ("graphs", Align::Right),
    ("configurations", Align::Right),
    ("Kendall tau", Align::Right),
    ("ordered pairs", Align::Right),
    ("top pick slower", Align::Right),
    ("time error", Align::Right),
];

/// Writes a table with a row for each version and target; nothing if there are none.
pub(super) fn write<'a>(
    formatter: &mut Formatter<'_>,
    versions: impl Iterator<Item = (String, &'a LiveQuality)>,
) -> fmt::Result {
    // A server without reported measurements gets no table with a header alone.
    let mut versions = versions.peekable();
    if versions.peek().is_none() {
        return Ok(());
    }
    let mut table = Table::new(&COLUMNS);
    versions.for_each(|(version, quality)| table.row(quality.cells(version)));
    write!(formatter, "\n{table}")
}

impl LiveQuality {
    fn cells(&self, version: String) -> [String; 8] {
        [
            version,
            self.target.clone(),
            grouped(self.graphs),
            grouped(self.configurations),
            format!("{:.3}", self.kendall_tau),
            percent(self.ordered_pairs),
            percent(self.top_pick_regret),
            self.time_error_ratio
                .map_or_else(|| or_dash(None, 0), |ratio| format!("{ratio:.2} x")),
        ]
    }
}

/// Formats a share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
