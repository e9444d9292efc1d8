//! The table, and the figures.

use hlorank_tests::prelude::*;

use crate::{drive::Load, system::System, workload::Workload};

/// Best rounds of one system.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredOutcome {
    loaded: Option<Load>,
    alone: Option<Load>,
}

impl MeasuredOutcome {
    /// Keeps a round if it is better than the best so far.
    pub(crate) fn keep(&mut self, loaded: Load, alone: Load) {
        if self
            .loaded
            .as_ref()
            .is_none_or(|kept| kept.requests_per_second() < loaded.requests_per_second())
        {
            self.loaded = Some(loaded);
        }
        if self
            .alone
            .as_ref()
            .is_none_or(|kept| kept.percentile(50) > alone.percentile(50))
        {
            self.alone = Some(alone);
        }
    }

    fn loaded(&self) -> &Load {
        self.loaded.as_ref().expect("every system was measured")
    }

    fn alone(&self) -> &Load {
        self.alone.as_ref().expect("every system was measured")
    }
}

/// Returns the ratio of hlorank's throughput to that of each system.
fn ratios(systems: &[MeasuredOutcome]) -> Vec<f64> {
    let requests = |system: &MeasuredOutcome| system.loaded().requests_per_second();
    systems
        .iter()
        .map(|system| requests(&systems[0]) / requests(system))
        .collect()
}

/// Prints the table of a workload.
pub(crate) fn print(workload: &Workload, systems: &[MeasuredOutcome]) {
    println!("\n{}: {}", workload.name, workload.what);
    println!(
        "{:26}  {:>10}  {:>16}  {:>10}  {:>10}  {:>10}  {:>10}  {:>11}  {:>10}",
        "",
        "requests/s",
        "configurations/s",
        "p50",
        "p99",
        "alone p50",
        "alone p99",
        "CPU/request",
        "hlorank is"
    );
    for ((system, measured), ratio) in System::ALL.iter().zip(systems).zip(ratios(systems)) {
        let (loaded, alone) = (measured.loaded(), measured.alone());
        let requests = loaded.requests_per_second();
        #[expect(clippy::cast_precision_loss, reason = "a thousand at most")]
        let configurations = requests * workload.configs as f64;
        println!(
            "{:26}  {requests:>10.1}  {configurations:>16.0}  {:>10}  {:>10}  {:>10}  {:>10}  {:>11}  {ratio:>9.1}x",
            system.name(),
            milliseconds(loaded.percentile(50)),
            milliseconds(loaded.percentile(99)),
            milliseconds(alone.percentile(50)),
            milliseconds(alone.percentile(99)),
            milliseconds(loaded.processor_time_per_request()),
        );
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Writes one figure for every other system.
pub(crate) fn write_figures(workload: &Workload, systems: &[MeasuredOutcome]) {
    let processor_time =
        |measured: &MeasuredOutcome| measured.loaded().processor_time_per_request().as_secs_f64();
    for ((system, measured), ratio) in System::ALL.iter().zip(systems).zip(ratios(systems)).skip(1)
    {
        Figure {
            name: format!("baselines_{}_{}", workload.name, system.key()),
            value: ratio,
            unit: "x",
            target: Target::AtLeast(workload.target()),
            how: format!(
                "requests/s of hlorank over {}: {}; {} clients, best of {} rounds; {:.1} times the processor time",
                system.name(),
                workload.what,
                crate::CLIENTS,
                crate::ROUNDS,
                processor_time(measured) / processor_time(&systems[0]),
            ),
        }
        .write();
    }
}
