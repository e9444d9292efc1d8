use std::{
    fmt::{self, Display},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;

use crate::cli::{
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, NumberedGraph, Selection},
    output::{Format, printable},
    progress::Progress,
};

#[derive(Debug, Args)]
pub(crate) struct Hash {
    #[arg(value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    file: PathBuf,
    #[command(flatten)]
    selection: Selection,
}

/// The hashes of a file.
#[derive(Debug, Serialize)]
struct HashReport {
    graphs: Vec<GraphHash>,
}

/// The hash of one graph.
#[derive(Debug, Serialize)]
struct GraphHash {
    module: usize,
    name: String,
    hash: String,
}

impl Hash {
    pub(crate) fn run(self, format: Format) -> Result<(), CommandError> {
        let input = self.selection.read(&self.file, &Progress::over(1))?;
        let report = HashReport {
            graphs: input.graphs.into_iter().map(GraphHash::from).collect(),
        };
        Ok(format.print(&report)?)
    }
}

impl From<NumberedGraph> for GraphHash {
    fn from(NumberedGraph { module, measured }: NumberedGraph) -> Self {
        Self {
            module,
            hash: measured.graph.hash().to_string(),
            name: measured.name,
        }
    }
}

impl Display for HashReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two spaces follow the hash, as in the output of `sha256sum`, which scripts can read.
        self.graphs
            .iter()
            .try_for_each(|graph| writeln!(formatter, "{}  {}", graph.hash, printable(&graph.name)))
    }
}
