//! `hlorank graph`: inspects graphs without a server.

use std::{
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use hlorank_graph::{
    FeatureFile, FeatureSet, MeasuredGraph, Pad, SegmentedGraph, Summary, opcode_name,
};
use serde::Serialize;

use crate::{
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, NumberedGraph, Selection},
    output::{Format, Table, counted, grouped, or_dash, printable},
    progress::Progress,
};

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Show the sizes of the graphs of a file, before and after pruning and segmentation
    Inspect(Inspect),
    /// Write the features, configurations and run times of a graph as npz
    Features(Features),
}

impl GraphCommand {
    pub(crate) fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Inspect(inspect) => inspect.run(format),
            Self::Features(features) => features.run(format),
        }
    }
}

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
struct InspectedFile {
    path: String,
    format: String,
    graphs: Vec<InspectedGraph>,
}

/// The sizes of one graph.
#[derive(Debug, Serialize)]
struct InspectedGraph {
    module: usize,
    name: String,
    kind: String,
    #[serde(flatten)]
    sizes: Summary,
    unknown_opcodes: usize,
    hash: String,
    configurations: usize,
    skipped_configurations: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    configurable_nodes: Option<Vec<ConfigurableNode>>,
}

impl Inspect {
    fn run(self, format: Format) -> Result<(), CommandError> {
        let progress = Progress::over(1);
        let input = self.selection.read(&self.file, &progress)?;
        let graph = |graph: &NumberedGraph| {
            let report = InspectedGraph::new(graph, self.nodes);
            progress.advance();
            report
        };
        Ok(format.print(&InspectedFile {
            path: self.file.display().to_string(),
            format: input.kind.to_string(),
            graphs: input.graphs.iter().map(graph).collect(),
        })?)
    }
}

impl InspectedGraph {
    fn new(NumberedGraph { module, measured }: &NumberedGraph, with_nodes: bool) -> Self {
        let cut = SegmentedGraph::new(&measured.graph);
        let measurements = measured.measurements.as_ref();
        let slots = measured.graph.configurable().iter().enumerate();
        let nodes = slots.map(|(slot, &node)| ConfigurableNode::new(measured, slot, node));
        Self {
            module: *module,
            name: measured.name.clone(),
            kind: cut.task.to_string(),
            sizes: cut.summary,
            unknown_opcodes: measured.graph.unknown_opcodes(),
            hash: cut.hash.to_string(),
            configurations: measurements.map_or(0, |measured| measured.run_times.len()),
            skipped_configurations: measurements.map_or(0, |measured| measured.skipped),
            configurable_nodes: with_nodes.then(|| nodes.collect()),
        }
    }
}

impl Display for InspectedFile {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let graphs = counted(self.graphs.len(), "graph");
        writeln!(formatter, "{}: {}, {graphs}\n", self.path, self.format)?;
        let mut table = Table::new(&[
            ">module",
            "name",
            "kind",
            ">nodes",
            ">edges",
            ">configurable",
            ">kept",
            ">segments",
            ">distinct",
            ">largest",
            ">configurations",
            "hash",
        ]);
        for graph in &self.graphs {
            table.row([
                graph.module.to_string(),
                graph.name.clone(),
                graph.kind.clone(),
                grouped(graph.sizes.nodes),
                grouped(graph.sizes.edges),
                grouped(graph.sizes.configurable),
                grouped(graph.sizes.kept),
                grouped(graph.sizes.segments),
                grouped(graph.sizes.distinct_segments),
                grouped(graph.sizes.largest_segment),
                grouped(graph.configurations),
                // A quarter of the digits tells graphs apart and keeps lines short.
                graph.hash[..16].to_owned(),
            ]);
        }
        write!(formatter, "{table}")?;
        // Remarks are about few graphs, so they are sentences below the table instead of columns.
        for graph in &self.graphs {
            let opcodes = counted(graph.unknown_opcodes, "node") + " with an unknown opcode";
            let skipped = counted(graph.skipped_configurations, "run");
            let skipped = skipped + " skipped: failed or not applicable";
            let opcodes = (graph.unknown_opcodes > 0).then_some(opcodes);
            let skipped = (graph.skipped_configurations > 0).then_some(skipped);
            let remarks: Vec<String> = opcodes.into_iter().chain(skipped).collect();
            if !remarks.is_empty() {
                writeln!(formatter, "module {}: {}", graph.module, remarks.join("; "))?;
            }
        }
        for graph in &self.graphs {
            if let Some(nodes) = &graph.configurable_nodes {
                let mut table = Table::new(&[">node", "opcode", "name", "dimensions", "ranks"]);
                for node in nodes {
                    let dimensions = node.dimensions.as_ref();
                    let ranks = node.tensor_ranks.as_ref();
                    table.row([
                        node.node.to_string(),
                        node.opcode.to_owned(),
                        or_dash(node.name.as_ref()),
                        or_dash(dimensions.map(|dimensions| format!("{dimensions:?}"))),
                        or_dash(ranks.map(|ranks| format!("{ranks:?}"))),
                    ]);
                }
                write!(formatter, "\nmodule {}:\n{table}", graph.module)?;
            }
        }
        Ok(())
    }
}

/// A node that a layout configuration sets. Only its number and opcode are known if the graph came as features.
#[derive(Debug, Serialize)]
struct ConfigurableNode {
    node: u32,
    opcode: &'static str,
    name: Option<String>,
    dimensions: Option<Vec<i64>>,
    /// Ranks of the output and of the first two operands.
    tensor_ranks: Option<Vec<u32>>,
}

impl ConfigurableNode {
    fn new(measured: &MeasuredGraph, slot: usize, node: u32) -> Self {
        // An npz file has numbers for its nodes, and no descriptions.
        let description = measured.nodes.get(slot);
        let opcode = measured.graph.opcodes().get(node as usize);
        Self {
            node,
            opcode: opcode.map_or("-", |&opcode| opcode_name(opcode)),
            name: description.map(|description| description.name.clone()),
            dimensions: description.map(|description| description.dimensions.clone()),
            tensor_ranks: description.map(|description| description.tensor_ranks.clone()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Features {
    #[arg(value_name = "FILE", required_unless_present = "digest", requires = "out", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    file: Option<PathBuf>,
    /// npz file to write
    ///
    /// An existing file is replaced, and a pipe or a device is written to.
    #[arg(long, value_name = "F.npz", requires = "file")]
    out: Option<PathBuf>,
    /// Padding of the sequence columns: 0 or -1
    ///
    /// -1 distinguishes padding from the value 0.
    #[arg(long, default_value = "0", allow_negative_numbers = true, value_parser = parse_pad)]
    pad: Pad,
    /// Print the digest of a feature set instead
    ///
    /// A model works only with the digest that it was trained with: that of tpugraphs-140 (the default), or of tpugraphs-140-loops
    /// if it takes the columns of loops of a tile.
    #[arg(
        long,
        value_name = "SET",
        num_args = 0..=1,
        default_missing_value = FeatureSet::TPUGRAPHS.name(),
        value_parser = parse_set,
        conflicts_with_all = ["file", "out"]
    )]
    digest: Option<&'static FeatureSet>,
    #[command(flatten)]
    selection: Selection,
}

fn parse_pad(text: &str) -> Result<Pad, String> {
    let pad = text.parse().ok().and_then(Pad::from_value);
    pad.ok_or_else(|| "the padding must be 0 or -1".to_owned())
}

fn parse_set(name: &str) -> Result<&'static FeatureSet, String> {
    let set = FeatureSet::ALL.into_iter().find(|set| set.name() == name);
    set.ok_or_else(|| {
        let names = FeatureSet::ALL.map(FeatureSet::name).join(" or ");
        format!("the feature set must be {names}")
    })
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct FeatureReport {
    path: String,
    name: String,
    pad: f32,
    nodes: usize,
    configurations: usize,
}

/// The feature digest.
#[derive(Debug, Serialize)]
struct DigestReport {
    feature_digest: String,
}

impl Features {
    fn run(self, format: Format) -> Result<(), CommandError> {
        match (&self.file, &self.out) {
            (Some(file), Some(out)) => self.write(file, out, format),
            // clap requires both, except with `--digest`.
            _ => Ok(format.print(&DigestReport {
                feature_digest: self
                    .digest
                    .unwrap_or(FeatureSet::TPUGRAPHS)
                    .digest()
                    .to_string(),
            })?),
        }
    }

    fn write(&self, file: &Path, out: &Path, format: Format) -> Result<(), CommandError> {
        let measured = self.selection.read_one(file, &Progress::over(1))?.measured;
        // Asked before writing, which replaces a regular file: the path is another file after it.
        let is_printed = !is_standard_output(out);
        FeatureFile::write(out, &measured, self.pad)?;
        if is_printed {
            let measurements = measured.measurements.as_ref();
            format.print(&FeatureReport {
                path: out.display().to_string(),
                name: measured.name.clone(),
                pad: self.pad.value(),
                nodes: measured.graph.len(),
                configurations: measurements.map_or(0, |measured| measured.run_times.len()),
            })?;
        }
        Ok(())
    }
}

/// Returns whether a path is standard output, where a report would follow the file.
fn is_standard_output(path: &Path) -> bool {
    // Device and inode identify a file. Names do not, because standard output has several of them.
    #[cfg(unix)]
    {
        use std::{fs, os::unix::fs::MetadataExt as _};
        let place = |path: &Path| {
            let found = fs::metadata(path).ok();
            found.map(|found| (found.dev(), found.ino()))
        };
        place(path).is_some_and(|written| place(Path::new("/dev/stdout")) == Some(written))
    }
    #[cfg(not(unix))]
    {
        _ = path;
        false
    }
}

impl Display for FeatureReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let nodes = counted(self.nodes, "node");
        let configurations = counted(self.configurations, "configuration");
        let name = printable(&self.name);
        let path = &self.path;
        writeln!(formatter, "{path}: {name}, {nodes}, {configurations}")
    }
}

impl Display for DigestReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.feature_digest)
    }
}
