//! `hlorank suggest`: proposes which configurations to measure next.

mod report;

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};
use hlorank_client::{GraphHandle, SuggestRequest, SuggestionSource};
use hlorank_graph::Configurations;

use self::report::SuggestReport;
use super::{
    configuration,
    draw::{CONFIGURATIONS, Draw, Drawn},
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, NumberedGraph, Selection},
    measured::Measurements,
    output::Format,
    progress::Progress,
    rank::{CONFIGS, CONFIGS_LONG},
    server::{ModelChoice, Server},
};

const EXAMPLES: &str = "\
Examples:
  hlorank suggest --graph module.hlo.txt --random 1000
  hlorank suggest --graph module.hlo.txt --random 1000 --measured measured.json --source segments
  hlorank suggest --graph kernels.pb --module 3 --measured measured.json --count 8 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Suggest {
    #[arg(long, value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    graph: PathBuf,
    #[arg(long, value_name = "FILE", help = CONFIGS, long_help = CONFIGS_LONG)]
    #[arg(help_heading = CONFIGURATIONS)]
    configs: Option<PathBuf>,
    #[command(flatten)]
    draw: Draw,
    #[command(flatten)]
    measurements: Measurements,
    /// Number of configurations to suggest
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    #[arg(help_heading = CONFIGURATIONS)]
    count: u32,
    /// Where suggestions come from
    ///
    /// The configurations themselves, or all combinations of the layouts that segments or nodes of the graph have in them
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    #[arg(help_heading = CONFIGURATIONS)]
    source: Source,
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    server: Server,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Source {
    #[default]
    Candidates,
    Segments,
    Nodes,
}

impl Suggest {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let progress = Progress::over(1);
        let graph = self.selection.read_one(&self.graph, &progress)?;
        let (candidates, drawn) = self.candidates(&graph)?;
        let learned = self.measurements.read(&graph.measured.graph)?;
        let handle = GraphHandle::of(&graph.measured);
        let mut request = SuggestRequest::new(&handle, &candidates)
            .model(self.model.model.as_ref())
            .count(self.count)
            .source(self.source.into());
        if let Some(learned) = &learned {
            let since = learned.since_improvement;
            request = request.adapt(Some(&learned.adapt)).since_improvement(since, self.draw.seed());
        }
        let client = self.server.connect().await?;
        let suggested = client.suggest(&request).await;
        let suggested = suggested.map_err(|source| CommandError::graph(&self.graph, graph.module, source))?;
        Ok(format.print(&SuggestReport::of(&graph.measured, &candidates, drawn, suggested))?)
    }

    /// Returns the configurations of `--configs`, drawn ones, or those of the file.
    fn candidates(&self, graph: &NumberedGraph) -> Result<(Configurations, Option<Drawn>), CommandError> {
        if let Some(configs) = &self.configs {
            return Ok((configuration::read(configs, &graph.measured.graph)?, None));
        }
        if let Some((drawn, report)) = self.draw.layouts(&self.graph, &graph.measured)? {
            return Ok((drawn, Some(report)));
        }
        let own = graph.measured.measurements.as_ref().map(|measured| measured.configurations.clone());
        own.map(|own| (own, None))
            .ok_or_else(|| CommandError::NoTiles { path: self.graph.display().to_string() })
    }
}

impl From<Source> for SuggestionSource {
    fn from(source: Source) -> Self {
        match source {
            Source::Candidates => Self::Candidates,
            Source::Segments => Self::Segments,
            Source::Nodes => Self::Nodes,
        }
    }
}
