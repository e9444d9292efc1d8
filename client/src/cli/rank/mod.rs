//! `hlorank rank`: ranks the configurations to measure first.

mod job;
mod report;
mod text;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use hlorank_client::{Client, GraphHandle, RankRequest};

use self::{
    job::Job,
    report::{GraphRanking, RankReport},
};
use super::{
    configuration,
    draw::{CONFIGURATIONS, Draw},
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, NumberedGraph, Selection},
    measured::Measurements,
    output::Format,
    progress::Progress,
    server::{ModelChoice, Server},
};

pub(crate) const CONFIGS: &str = "JSON list of configurations to rank; `--help` has the form";

pub(crate) const CONFIGS_LONG: &str = r#"JSON list of configurations to rank instead of those of the file: layouts
{"nodes": [{"node": 17, "tensors": [{"minor_to_major": [1, 0]}]}]}
or tiles
{"kernel_bounds": [3, 1], "output_bounds": [8, 128], "input_bounds": []}"#;

const EXAMPLES: &str = "\
Examples:
  hlorank rank --graph kernels.pb --top 5
  hlorank rank --graph module.hlo.txt --random 1000 --seed 1
  hlorank rank --graph module.hlo.txt --configs candidates.json --json
  hlorank rank --graph kernels.pb --module 3 --model tile-xla-cpu@canary
  hlorank rank --graph module.hlo.txt --random 1000 --measured measured.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rank {
    #[arg(long, value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    graph: PathBuf,
    #[arg(long, value_name = "FILE", help = CONFIGS, long_help = CONFIGS_LONG)]
    #[arg(help_heading = CONFIGURATIONS)]
    configs: Option<PathBuf>,
    #[command(flatten)]
    draw: Draw,
    #[command(flatten)]
    measurements: Measurements,
    /// Number of best configurations to show; 0 shows all
    #[arg(long, value_name = "K", default_value_t = 10)]
    #[arg(help_heading = CONFIGURATIONS)]
    top: u32,
    /// Rank fewer configurations if --timeout is too short
    ///
    /// As many of the first ones are ranked as fit.
    #[arg(long)]
    #[arg(help_heading = CONFIGURATIONS)]
    allow_partial: bool,
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    server: Server,
}

impl Rank {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let report = match &self.configs {
            Some(configs) => self.rank_given(configs).await?,
            None => self.rank_own().await?,
        };
        Ok(format.print(&report)?)
    }

    /// Ranks the configurations of a JSON file.
    async fn rank_given(&self, configs: &Path) -> Result<RankReport, CommandError> {
        let progress = Progress::over(1);
        let graph = self.selection.read_one(&self.graph, &progress)?;
        let configurations = configuration::read(configs, &graph.measured.graph)?;
        self.rank(&[Job::given(&graph, &configurations)], &progress).await
    }

    /// Ranks the configurations that come with the graphs, or drawn ones.
    async fn rank_own(&self) -> Result<RankReport, CommandError> {
        let progress = Progress::over(1);
        let graphs = self.selection.read(&self.graph, &progress)?.graphs;
        let draw = |graph: &NumberedGraph| self.draw.layouts(&self.graph, &graph.measured);
        let drawn: Vec<_> = graphs.iter().map(draw).collect::<Result<_, _>>()?;
        let jobs = graphs.iter().zip(&drawn).filter_map(|(graph, drawn)| match drawn {
            Some((configurations, drawn)) => Some(Job::drawn(graph, configurations, *drawn)),
            None => Job::of_file(graph),
        });
        self.rank(&jobs.collect::<Vec<_>>(), &progress).await
    }

    async fn rank(&self, jobs: &[Job<'_>], progress: &Progress) -> Result<RankReport, CommandError> {
        let client = self.server.connect().await?;
        let mut graphs = Vec::with_capacity(jobs.len());
        for job in jobs {
            graphs.push(self.rank_one(&client, job).await?);
            progress.advance();
        }
        Ok(RankReport { graphs })
    }

    async fn rank_one(&self, client: &Client, job: &Job<'_>) -> Result<GraphRanking, CommandError> {
        let graph = GraphHandle::of(job.measured);
        let request =
            RankRequest::new(&graph, job.configurations).model(self.model.model.clone()).top(self.top);
        let learned = self.measurements.read(&job.measured.graph)?;
        let request = request.adapt(learned.map(|learned| learned.adapt));
        let request = if self.allow_partial { request.allow_partial() } else { request };
        let start = Instant::now();
        let ranking = client.rank(&request).await;
        let ranking = ranking.map_err(|source| CommandError::graph(&self.graph, job.module, source))?;
        Ok(GraphRanking::of(job, ranking, start.elapsed()))
    }
}
