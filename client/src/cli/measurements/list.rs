use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use clap::Args;
use hlorank_client::{MeasurementsOf, v1::GraphMeasurements};
use hlorank_graph::Digest;
use serde::Serialize;

use crate::cli::{
    error::CommandError,
    output::{Align, Format, Table, counted, grouped},
    server::Server,
};

/// Which measurements to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only measurements of this target
    ///
    /// By default, those of all targets.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    target: String,
    #[command(flatten)]
    server: Server,
}

/// What a server keeps.
#[derive(Debug, Default, Serialize)]
struct ListReport {
    kept: Vec<Kept>,
}

/// What one reporter measured of one graph on a target.
#[derive(Debug, Serialize)]
struct Kept {
    target: String,
    graph: String,
    /// Empty if it is not known, or another client that this one may not know.
    reporter: String,
    measurements: usize,
    /// Number of those that failed.
    failed: usize,
}

/// Target, graph and reporter, and how many measurements they have: all, and those that failed.
type Counts = BTreeMap<(String, String, String), [usize; 2]>;

impl List {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let of = match self.target.as_str() {
            "" => MeasurementsOf::All,
            target => MeasurementsOf::Target(target),
        };
        let (mut counts, mut after) = (Counts::new(), Vec::new());
        loop {
            let page = client.list_measurements(of, &after).await?;
            for part in page.graphs {
                count(part, &mut counts);
            }
            after = page.next;
            if after.is_empty() {
                break;
            }
        }
        let kept = counts
            .into_iter()
            .map(|((target, graph, reporter), [measurements, failed])| Kept {
                target,
                graph,
                reporter,
                measurements,
                failed,
            });
        Ok(format.print(&ListReport {
            kept: kept.collect(),
        })?)
    }
}

fn count(part: GraphMeasurements, counts: &mut Counts) {
    let GraphMeasurements {
        target,
        graph_hash,
        seconds,
        reporters,
        ..
    } = part;
    let graph = graph_hash
        .as_ref()
        .try_into()
        .map_or(Digest([0; 32]), Digest)
        .to_string();
    // Older servers send no reporters.
    let mut reporters = reporters.into_iter();
    for time in seconds {
        let reporter = reporters.next().unwrap_or_default();
        let [measurements, failed] = counts
            .entry((target.clone(), graph.clone(), reporter))
            .or_default();
        *measurements += 1;
        *failed += usize::from(time == 0.0);
    }
}

impl Display for ListReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.kept.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        let columns = [
            ("target", Align::Left),
            ("graph", Align::Left),
            ("reporter", Align::Left),
            ("measurements", Align::Right),
            ("failed", Align::Right),
        ];
        let mut table = Table::new(&columns);
        for Kept {
            target,
            graph,
            reporter,
            measurements,
            failed,
        } in &self.kept
        {
            let reporter = if reporter.is_empty() { "-" } else { reporter }.to_owned();
            let numbers = [grouped(*measurements), grouped(*failed)];
            let [measurements, failed] = numbers;
            table.row([
                target.clone(),
                graph.clone(),
                reporter,
                measurements,
                failed,
            ]);
        }
        let all = self.kept.iter().map(|kept| kept.measurements).sum();
        write!(formatter, "{table}\n{}.", counted(all, "measurement"))
    }
}
