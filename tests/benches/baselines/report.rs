//! The table, and the figures.

use hlorank_tests::prelude::*;

use crate::{system::System, workload::Workload};

/// A round of one system, or the best of several.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) requests_per_second: f64,
    /// Median in milliseconds with one client.
    pub(crate) alone: f64,
}

impl Round {
    /// Returns the better throughput and the better latency.
    pub(crate) fn or_better(self, other: Self) -> Self {
        Self {
            requests_per_second: self.requests_per_second.max(other.requests_per_second),
            alone: self.alone.min(other.alone),
        }
    }
}

/// Prints the table of a workload, and writes one figure for every other system than hlorank.
pub(crate) fn write(workload: &Workload, best: &[Round]) {
    let Workload { name, what, .. } = workload;
    println!("\n{name}: {what}\n");
    println!("| system | requests/s | alone, p50 | hlorank is |");
    println!("|---|---:|---:|---:|");
    let ratio = |round: &Round| best[0].requests_per_second / round.requests_per_second;
    for (system, round) in System::ALL.iter().zip(best) {
        println!(
            "| {} | {:.1} | {:.2} ms | {:.2} x |",
            system.name(),
            round.requests_per_second,
            round.alone,
            ratio(round),
        );
    }
    for (system, round) in System::ALL.iter().zip(best).skip(1) {
        Figure {
            name: format!("baselines_{name}_{}", system.key()),
            value: ratio(round),
            unit: "x",
            target: Target::AtLeast(workload.target()),
            how: format!(
                "requests/s of hlorank over {}: {what}; {} clients, best of {} rounds",
                system.name(),
                crate::CLIENTS,
                crate::ROUNDS,
            ),
        }
        .write();
    }
}
