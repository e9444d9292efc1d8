//! What `rank` and `suggest` are about.

use std::path::PathBuf;

use clap::Args;

use super::{
    draw::{CONFIGURATIONS, Draw},
    input::{GRAPH_FILE, GRAPH_FILE_LONG, Selection},
    measured::Measurements,
    server::{ModelChoice, Server},
};

const CONFIGS: &str = "JSON list of configurations to rank; `--help` has the form";

const CONFIGS_LONG: &str = r#"JSON list of configurations to rank instead of those of the file: layouts
{"nodes": [{"node": 17, "tensors": [{"minor_to_major": [1, 0]}]}]}
or tiles
{"kernel_bounds": [3, 1], "output_bounds": [8, 128], "input_bounds": []}
or fusions
{"fused_nodes": [17, 18]}
or columns of a feature set, a list for every node
{"node_features": [[1.5, 2.0], [3.0, 4.0]]}"#;

/// A graph, its configurations, what was measured of them, and the server and the model to ask.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    #[arg(long, value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    pub(crate) graph: PathBuf,
    #[arg(long, value_name = "FILE", help = CONFIGS, long_help = CONFIGS_LONG)]
    #[arg(help_heading = CONFIGURATIONS)]
    pub(crate) configs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) draw: Draw,
    #[command(flatten)]
    pub(crate) measurements: Measurements,
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) server: Server,
}
