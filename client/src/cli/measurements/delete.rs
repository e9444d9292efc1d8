use std::fmt::{self, Display, Formatter};

use clap::Args;
use hlorank_client::Deletion;
use hlorank_graph::Digest;
use serde::Serialize;

use crate::cli::{
    error::CommandError,
    output::{Format, counted},
    server::Server,
};

/// Which measurements to delete.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Delete measurements of this target
    ///
    /// Without it, --reporter deletes those of all targets.
    #[arg(long, value_name = "NAME", required_unless_present = "reporter")]
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
    server: Server,
}

/// What was deleted.
#[derive(Debug, Serialize)]
struct DeleteReport {
    deleted: u64,
}

impl Delete {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let deleted = client.delete(self.deletion()).await?;
        Ok(format.print(&DeleteReport { deleted })?)
    }

    fn deletion(&self) -> Deletion<'_> {
        // The arguments allow no other combinations: a graph needs a target and excludes a
        // reporter, and one of target and reporter is required.
        let target = self.target.as_deref().unwrap_or_default();
        match (self.graph, self.reporter.as_deref()) {
            (Some(graph), _) => Deletion::Graph(target, graph),
            (None, None) => Deletion::Target(target),
            (None, Some(reporter)) if target.is_empty() => Deletion::Reporter(reporter),
            (None, Some(reporter)) => Deletion::ReporterOnTarget(reporter, target),
        }
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
