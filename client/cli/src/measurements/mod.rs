//! `hlorank measurements`: lists and deletes what a server keeps, and takes it to files that training reads, and back.

pub(crate) mod age;
mod export;
mod import;

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use clap::{Args, Subcommand};
use hlorank_client::{
    Client,
    v1::{DeleteMeasurementsRequest, ListMeasurementsRequest},
};
use hlorank_graph::Digest;
use serde::Serialize;

use self::{
    age::Age,
    export::{Export, graph_of, of_target},
    import::Import,
};
use crate::{
    error::CommandError,
    output::{Format, Table, counted, grouped, or_dash},
    replicas::print_each,
    server::Server,
};

#[derive(Debug, Subcommand)]
pub(crate) enum MeasurementsCommand {
    /// Write the measurements that a server keeps to files that training reads
    Export(Export),
    /// Report the measurements of files to a server
    Import(Import),
    /// Show how many measurements of each graph a server keeps, and who reported them
    List(List),
    /// Delete measurements that a server keeps
    Delete(Delete),
}

impl MeasurementsCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Export(export) => export.run(format).await,
            Self::Import(import) => import.run(format).await,
            Self::List(list) => list.run(format).await,
            Self::Delete(delete) => delete.run(format).await,
        }
    }
}

/// Which measurements to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only measurements of this target
    ///
    /// By default, those of all targets.
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    target: String,
    #[command(flatten)]
    age: Age,
    #[command(flatten)]
    server: Server,
}

/// What a server keeps.
#[derive(Debug, Default, Serialize)]
struct ListReport {
    kept: Vec<ReporterCounts>,
}

/// The measurements of one reporter, of one graph on a target.
#[derive(Debug, Serialize)]
struct ReporterCounts {
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
    /// When the last one was reported, in seconds since 1970.
    last_reported_at: u64,
}

impl List {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let request = of_target(&self.target, &self.age)?;
        let list = async |client: &Client| list(client, request.clone()).await;
        print_each(format, self.server.connect_each().await?, list).await
    }
}

/// Counts what a server keeps.
async fn list(
    client: &Client,
    mut request: ListMeasurementsRequest,
) -> Result<ListReport, CommandError> {
    let mut counts = BTreeMap::new();
    loop {
        let page = client.list_measurements(&request).await?;
        for part in page.graphs {
            let graph = graph_of(&part).to_string();
            // A client without the scope for it gets no reporters.
            let mut reporters = part.reporters.into_iter();
            for (time, reported_at) in part.seconds.into_iter().zip(part.reported_at) {
                let key = Key {
                    target: part.target.clone(),
                    graph: graph.clone(),
                    reporter: reporters.next().unwrap_or_default(),
                };
                let counts: &mut Counts = counts.entry(key).or_default();
                counts.measurements += 1;
                counts.failed += usize::from(time == 0.0);
                counts.last_reported_at = counts.last_reported_at.max(reported_at);
            }
        }
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    let kept = counts
        .into_iter()
        .map(|(key, counts)| ReporterCounts { key, counts });
    Ok(ListReport {
        kept: kept.collect(),
    })
}

impl Display for ListReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.kept.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        let mut table = Table::new(&[
            "target",
            "graph",
            "reporter",
            ">measurements",
            ">failed",
            "last reported",
        ]);
        for ReporterCounts { key, counts } in &self.kept {
            table.row([
                key.target.clone(),
                key.graph.clone(),
                or_dash(Some(&key.reporter).filter(|name| !name.is_empty())),
                grouped(counts.measurements),
                grouped(counts.failed),
                age::shown(counts.last_reported_at),
            ]);
        }
        let all = self.kept.iter().map(|kept| kept.counts.measurements).sum();
        write!(formatter, "{table}\n{}.", counted(all, "measurement"))
    }
}

/// Which measurements to delete.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Delete measurements of this target
    ///
    /// Without it, --reporter, --older-than and --before delete those of all targets.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["reporter", "older_than", "before"])]
    target: Option<String>,
    /// Delete only measurements of this graph, 64 hexadecimal digits
    #[arg(long, value_name = "HASH", requires = "target", conflicts_with = "reporter", value_parser = hash)]
    graph: Option<Digest>,
    /// Delete only measurements of this reporter
    ///
    /// The name of a token or an address, as `hlorank measurements list` shows it.
    #[arg(long, value_name = "NAME")]
    reporter: Option<String>,
    #[command(flatten)]
    age: Age,
    #[command(flatten)]
    server: Server,
}

/// What was deleted.
#[derive(Debug, Serialize)]
struct DeleteReport {
    deleted: u64,
}

impl Delete {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let request = DeleteMeasurementsRequest {
            target: self.target.unwrap_or_default(),
            graph_hash: self
                .graph
                .map(|graph| graph.0.to_vec().into())
                .unwrap_or_default(),
            reporter: self.reporter.unwrap_or_default(),
            reported_before: self.age.reported_before()?,
        };
        let delete = async |client: &Client| {
            let deleted = client.delete_measurements(&request).await?;
            Ok(DeleteReport { deleted })
        };
        print_each(format, self.server.connect_each().await?, delete).await
    }
}

fn hash(text: &str) -> Result<Digest, &'static str> {
    Digest::from_hex(text).ok_or("expected 64 hexadecimal digits")
}

impl Display for DeleteReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let deleted = usize::try_from(self.deleted).unwrap_or(usize::MAX);
        writeln!(formatter, "Deleted {}.", counted(deleted, "measurement"))
    }
}
