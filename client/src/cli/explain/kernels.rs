//! The kernels of a fusion, and where its time goes.

use std::fmt::{self, Display, Formatter};

use hlorank_client::{Ranking, v1::KernelTime};
use serde::Serialize;

use super::parts::opcode;
use crate::cli::{
    job::Job,
    output::{Align, Table, counted, grouped, seconds},
};

/// The kernels of one configuration, the longest first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Kernels(pub(crate) Vec<Kernel>);

/// A kernel and its predicted run time.
#[derive(Debug, Serialize)]
pub(crate) struct Kernel {
    /// Number of the node that it writes.
    pub(crate) node: u32,
    pub(crate) opcode: &'static str,
    pub(crate) computed_nodes: u32,
    pub(crate) seconds: f32,
}

/// Maximum number of kernels in a table.
const SHOWN: usize = 20;

/// Number of letters of a bar that is the whole time.
const BAR_LETTERS: f32 = 40.0;

const COLUMNS: [(&str, Align); 6] = [
    ("node", Align::Right),
    ("opcode", Align::Left),
    ("computes", Align::Right),
    ("time", Align::Right),
    ("share", Align::Right),
    ("", Align::Left),
];

impl Kernels {
    /// Returns the kernels of one configuration of an answer.
    pub(crate) fn of(job: &Job<'_>, kernels: &[KernelTime]) -> Self {
        let kernel = |kernel: &KernelTime| Kernel {
            node: kernel.node,
            opcode: opcode(&job.measured.graph, kernel.node),
            computed_nodes: kernel.computed_nodes,
            seconds: kernel.seconds,
        };
        let mut kernels: Vec<Kernel> = kernels.iter().map(kernel).collect();
        kernels.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        Self(kernels)
    }

    /// Returns the kernels of the configuration with this number in an answer; none if its score is
    /// infinite.
    pub(super) fn of_config(job: &Job<'_>, answer: &Ranking, config: usize) -> Self {
        // Kernels are in the order of the ranking.
        let mut best = answer.best.iter();
        let place = best.position(|ranked| ranked.config == config);
        let kernels = place.and_then(|place| answer.kernels.get(place));
        Self::of(job, kernels.map_or(&[], Vec::as_slice))
    }

    /// Returns the sum of the predicted run times in seconds.
    pub(crate) fn total(&self) -> f32 {
        self.0.iter().map(|kernel| kernel.seconds).sum()
    }

    fn table(&self, total: f32) -> Table {
        let mut table = Table::new(&COLUMNS);
        for kernel in self.0.iter().take(SHOWN) {
            let share = kernel.seconds / total;
            table.row([
                kernel.node.to_string(),
                kernel.opcode.to_owned(),
                counted(kernel.computed_nodes as usize, "node"),
                seconds(kernel.seconds),
                format!("{:.1} %", 100.0 * share),
                bar(share),
            ]);
        }
        table
    }
}

impl Display for Kernels {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let count = counted(self.0.len(), "kernel");
        writeln!(formatter, "{count}, {} predicted\n", seconds(total))?;
        write!(formatter, "{}", self.table(total))?;
        let others = self.0.get(SHOWN..).unwrap_or_default();
        if !others.is_empty() {
            let time: f32 = others.iter().map(|kernel| kernel.seconds).sum();
            writeln!(
                formatter,
                "and {} others with {} in all",
                grouped(others.len()),
                seconds(time)
            )?;
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1"
)]
fn bar(share: f32) -> String {
    "█".repeat((share * BAR_LETTERS).round() as usize)
}
