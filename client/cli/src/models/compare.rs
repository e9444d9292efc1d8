use std::fmt::{self, Display, Formatter};

use clap::Args;
use hlorank_client::{Client, ModelReference, v1};
use serde::Serialize;

use crate::{
    error::CommandError,
    output::{Format, Table, counted, percent},
    replicas::print_each,
    server::Server,
};

/// Two versions to compare.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// First version: NAME@VERSION, NAME@stable or NAME@canary
    #[arg(value_name = "MODEL")]
    first: ModelReference,
    /// Second version, of the same task
    #[arg(value_name = "MODEL")]
    second: ModelReference,
    /// Compare only measurements of this target
    ///
    /// By default, those of all targets.
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    target: String,
    #[command(flatten)]
    server: Server,
}

/// How two versions rank the same measurements.
#[derive(Debug, Serialize)]
struct ComparisonReport {
    first: String,
    second: String,
    graphs: usize,
    configurations: usize,
    kendall_tau: MeanReport,
    ordered_pairs: MeanReport,
    top_pick_regret: MeanReport,
    /// `first`, `second` or `undecided`.
    better: &'static str,
}

/// The means of a measure, and the 95 % interval of the second minus the first.
#[derive(Debug, Serialize)]
struct MeanReport {
    first: f64,
    second: f64,
    difference: [f64; 2],
}

impl Compare {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        // Each replica has measurements of its own.
        let compare = async |client: &Client| {
            let versions = [&self.first, &self.second];
            let compared = client.compare_models(versions, &self.target).await?;
            Ok(ComparisonReport::from(compared))
        };
        print_each(format, self.server.connect_each().await?, compare).await
    }
}

impl From<v1::CompareModelsResponse> for ComparisonReport {
    fn from(compared: v1::CompareModelsResponse) -> Self {
        let name = |selector: Option<v1::ModelSelector>| {
            ModelReference::from(selector.unwrap_or_default()).to_string()
        };
        let mean = |mean: Option<v1::ComparedMean>| {
            let mean = mean.unwrap_or_default();
            MeanReport {
                first: mean.first,
                second: mean.second,
                difference: [mean.difference_low, mean.difference_high],
            }
        };
        Self {
            better: match compared.verdict() {
                v1::Verdict::First => "first",
                v1::Verdict::Second => "second",
                v1::Verdict::Undecided | v1::Verdict::Unspecified => "undecided",
            },
            first: name(compared.first),
            second: name(compared.second),
            graphs: compared.graphs as usize,
            configurations: compared.configs as usize,
            kendall_tau: mean(compared.kendall_tau),
            ordered_pairs: mean(compared.ordered_pairs),
            top_pick_regret: mean(compared.top_pick_regret),
        }
    }
}

impl MeanReport {
    fn cells(&self, measure: &str, show: impl Fn(f64) -> String) -> [String; 5] {
        // Both means are over the same graphs, and the interval is that of a paired bootstrap: how
        // hard a graph is cancels in the difference, so few graphs can already decide.
        let [low, high] = self.difference;
        [
            measure.to_owned(),
            show(self.first),
            show(self.second),
            show(self.second - self.first),
            format!("{} to {}", show(low), show(high)),
        ]
    }
}

impl ComparisonReport {
    fn table(&self) -> Table {
        let columns = [
            "mean over graphs",
            &format!(">{}", self.first),
            &format!(">{}", self.second),
            ">difference",
            ">95 % interval",
        ];
        let mut table = Table::new(&columns);
        let number = |value: f64| format!("{value:.3}");
        table.row(self.kendall_tau.cells("Kendall tau", number));
        table.row(self.ordered_pairs.cells("ordered pairs", percent));
        table.row(self.top_pick_regret.cells("top pick slower", percent));
        table
    }

    fn verdict(&self) -> String {
        let measured = counted(self.configurations, "measured configuration");
        let graphs = counted(self.graphs, "graph");
        let better = match self.better {
            "first" => &self.first,
            "second" => &self.second,
            // The interval contains 0, or there are fewer than five graphs. More graphs narrow it.
            _ => {
                return format!("Undecided after {measured} of {graphs}: measure more.");
            }
        };
        format!("{better} ranks {measured} of {graphs} better.")
    }
}

impl Display for ComparisonReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.graphs == 0 {
            return writeln!(
                formatter,
                "No graph has three measured configurations that both versions rank; report measurements first."
            );
        }
        writeln!(formatter, "{}\n{}", self.table(), self.verdict())
    }
}
