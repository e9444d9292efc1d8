use std::{
    fmt::{self, Display},
    path::PathBuf,
};

use clap::Args;
use hlorank_graph::SegmentedGraph;
use serde::Serialize;

use super::nodes::ConfigurableNodes;
use crate::cli::{
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, NumberedGraph, Selection},
    output::{Align, Format, Table, counted, grouped},
    progress::Progress,
};

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    #[arg(value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    file: PathBuf,
    /// Also list the nodes that a layout configuration sets
    #[arg(long)]
    nodes: bool,
    #[command(flatten)]
    selection: Selection,
}

/// The graphs of a file.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    format: String,
    graphs: Vec<GraphReport>,
}

/// The sizes of one graph.
#[derive(Debug, Serialize)]
struct GraphReport {
    module: usize,
    name: String,
    kind: String,
    nodes: usize,
    edges: usize,
    configurable: usize,
    kept: usize,
    segments: usize,
    distinct_segments: usize,
    largest_segment: usize,
    unknown_opcodes: usize,
    hash: String,
    configurations: usize,
    skipped_configurations: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    configurable_nodes: Option<ConfigurableNodes>,
}

impl Inspect {
    pub(crate) fn run(self, format: Format) -> Result<(), CommandError> {
        Ok(format.print(&self.inspect()?)?)
    }

    fn inspect(&self) -> Result<FileReport, CommandError> {
        let progress = Progress::over(1);
        let input = self.selection.read(&self.file, &progress)?;
        Ok(FileReport {
            path: self.file.display().to_string(),
            format: input.kind.to_string(),
            graphs: input
                .graphs
                .iter()
                .map(|graph| self.inspect_graph(graph, &progress))
                .collect(),
        })
    }

    fn inspect_graph(&self, graph: &NumberedGraph, progress: &Progress) -> GraphReport {
        let nodes = self.nodes.then(|| ConfigurableNodes::of(&graph.measured));
        let report = GraphReport {
            configurable_nodes: nodes,
            ..GraphReport::of(graph)
        };
        progress.advance();
        report
    }
}

impl GraphReport {
    fn of(graph: &NumberedGraph) -> Self {
        let cut = SegmentedGraph::new(&graph.measured.graph);
        let sizes = &cut.summary;
        let measurements = graph.measured.measurements.as_ref();
        Self {
            module: graph.module,
            name: graph.measured.name.clone(),
            kind: cut.task.to_string(),
            nodes: sizes.nodes,
            edges: sizes.edges,
            configurable: sizes.configurable,
            kept: sizes.kept,
            segments: sizes.segments,
            distinct_segments: sizes.distinct_segments,
            largest_segment: sizes.largest_segment,
            unknown_opcodes: graph.measured.graph.unknown_opcodes(),
            hash: cut.hash.to_string(),
            configurations: measurements.map_or(0, |measured| measured.run_times.len()),
            skipped_configurations: measurements.map_or(0, |measured| measured.skipped),
            configurable_nodes: None,
        }
    }

    fn cells(&self) -> [String; 12] {
        [
            self.module.to_string(),
            self.name.clone(),
            self.kind.clone(),
            grouped(self.nodes),
            grouped(self.edges),
            grouped(self.configurable),
            grouped(self.kept),
            grouped(self.segments),
            grouped(self.distinct_segments),
            grouped(self.largest_segment),
            grouped(self.configurations),
            // A quarter of the digits tells graphs apart and keeps lines short.
            self.hash[..16].to_owned(),
        ]
    }

    /// Returns remarks about unusual properties of the graph.
    fn remarks(&self) -> Vec<String> {
        let opcodes = (self.unknown_opcodes > 0).then(|| {
            let nodes = counted(self.unknown_opcodes, "node");
            format!("{nodes} with an unknown opcode")
        });
        let skipped = (self.skipped_configurations > 0).then(|| {
            let runs = counted(self.skipped_configurations, "run");
            format!("{runs} skipped: failed or not applicable")
        });
        opcodes.into_iter().chain(skipped).collect()
    }

    fn write_remarks(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remarks = self.remarks();
        if remarks.is_empty() {
            return Ok(());
        }
        writeln!(formatter, "module {}: {}", self.module, remarks.join("; "))
    }

    fn write_nodes(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.configurable_nodes {
            Some(nodes) => write!(formatter, "\nmodule {}:\n{nodes}", self.module),
            None => Ok(()),
        }
    }
}

const COLUMNS: [(&str, Align); 12] = [
    ("module", Align::Right),
    ("name", Align::Left),
    ("kind", Align::Left),
    ("nodes", Align::Right),
    ("edges", Align::Right),
    ("configurable", Align::Right),
    ("kept", Align::Right),
    ("segments", Align::Right),
    ("distinct", Align::Right),
    ("largest", Align::Right),
    ("configurations", Align::Right),
    ("hash", Align::Left),
];

impl Display for FileReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graphs = counted(self.graphs.len(), "graph");
        writeln!(formatter, "{}: {}, {graphs}\n", self.path, self.format)?;
        let mut table = Table::new(&COLUMNS);
        self.graphs
            .iter()
            .for_each(|graph| table.row(graph.cells()));
        write!(formatter, "{table}")?;
        // Remarks are about few graphs, so they are sentences below the table instead of columns.
        self.graphs
            .iter()
            .try_for_each(|graph| graph.write_remarks(formatter))?;
        self.graphs
            .iter()
            .try_for_each(|graph| graph.write_nodes(formatter))
    }
}
