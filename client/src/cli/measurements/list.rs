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

/// The measurements of one reporter, of one graph on a target.
#[derive(Debug, Serialize)]
struct Kept {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    counts: Counts,
}

/// What measurements are counted by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Key {
    target: String,
    graph: String,
    /// Empty if it is not known, or another client that this one may not know.
    reporter: String,
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    measurements: usize,
    /// Number of those that failed.
    failed: usize,
}

impl List {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let listed = of_target(&self.target);
        let mut counts = BTreeMap::new();
        let mut after = Vec::new();
        loop {
            let page = client.list_measurements(listed, &after).await?;
            for part in page.graphs {
                count(part, &mut counts);
            }
            after = page.next;
            if after.is_empty() {
                break;
            }
        }
        let kept = counts.into_iter().map(|(key, counts)| Kept { key, counts });
        let kept = kept.collect();
        Ok(format.print(&ListReport { kept })?)
    }
}

/// Returns which measurements `--target` selects, which is empty by default.
pub(super) fn of_target(target: &str) -> MeasurementsOf<'_> {
    match target {
        "" => MeasurementsOf::All,
        target => MeasurementsOf::Target(target),
    }
}

/// Returns the graph of some measurements.
pub(super) fn graph_of(part: &GraphMeasurements) -> Digest {
    // A hash of another length, which no server sends, becomes one that no graph has.
    let hash = part.graph_hash.as_ref().try_into();
    hash.map_or(Digest([0; 32]), Digest)
}

fn count(part: GraphMeasurements, counts: &mut BTreeMap<Key, Counts>) {
    let graph = graph_of(&part).to_string();
    // Older servers send no reporters.
    let mut reporters = part.reporters.into_iter();
    for time in part.seconds {
        let key = Key {
            target: part.target.clone(),
            graph: graph.clone(),
            reporter: reporters.next().unwrap_or_default(),
        };
        let counts = counts.entry(key).or_default();
        counts.measurements += 1;
        counts.failed += usize::from(time == 0.0);
    }
}

impl Kept {
    fn cells(&self) -> impl Iterator<Item = String> {
        let reporter = match self.key.reporter.as_str() {
            "" => "-",
            reporter => reporter,
        };
        let names = [self.key.target.as_str(), &self.key.graph, reporter].map(str::to_owned);
        let numbers = [self.counts.measurements, self.counts.failed].map(grouped);
        names.into_iter().chain(numbers)
    }
}

const COLUMNS: [(&str, Align); 5] = [
    ("target", Align::Left),
    ("graph", Align::Left),
    ("reporter", Align::Left),
    ("measurements", Align::Right),
    ("failed", Align::Right),
];

impl Display for ListReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.kept.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        let mut table = Table::new(&COLUMNS);
        self.kept.iter().for_each(|kept| table.row(kept.cells()));
        let all = self.kept.iter().map(|kept| kept.counts.measurements).sum();
        write!(formatter, "{table}\n{}.", counted(all, "measurement"))
    }
}
