//! `hlorank rank`: ranks the configurations to measure first.

mod job;
mod kernels;
mod report;
mod text;

use std::{path::Path, time::Instant};

use clap::Args;
use hlorank_client::{Client, GraphHandle, RankRequest};

use self::{
    job::Job,
    report::{GraphRanking, RankReport},
};
use super::{
    configuration, draw::CONFIGURATIONS, error::CommandError, input::NumberedGraph, output::Format,
    progress::Progress, subject::Subject,
};

const EXAMPLES: &str = "\
Examples:
  hlorank rank --graph kernels.pb --top 5
  hlorank rank --graph module.hlo.txt --random 1000 --seed 1
  hlorank rank --graph module.hlo.txt --configs candidates.json --json
  hlorank rank --graph program.hlo.txt --task fusion --random 1000 --explain
  hlorank rank --graph kernels.pb --module 3 --model tile-xla-cpu@canary
  hlorank rank --graph module.hlo.txt --random 1000 --measured measured.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rank {
    #[command(flatten)]
    subject: Subject,
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
    /// Show the kernels of the K best fusions
    ///
    /// With the predicted run time of each, the longest first; K is 1 if it is not given, and at most 16.
    #[arg(long, value_name = "K", num_args = 0..=1, default_value_t = 0, default_missing_value = "1")]
    #[arg(help_heading = CONFIGURATIONS, value_parser = clap::value_parser!(u32).range(0..=16))]
    explain: u32,
}

impl Rank {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let report = match &self.subject.configs {
            Some(configs) => self.rank_given(configs).await?,
            None => self.rank_own().await?,
        };
        Ok(format.print(&report)?)
    }

    /// Ranks the configurations of a JSON file.
    async fn rank_given(&self, configs: &Path) -> Result<RankReport, CommandError> {
        let progress = Progress::over(1);
        let graph = self.subject.selection.read_one(&self.subject.graph, &progress)?;
        let configurations = configuration::read(configs, &graph.measured.graph)?;
        self.rank(&[Job::given(&graph, &configurations)], &progress).await
    }

    /// Ranks the configurations that come with the graphs, or drawn ones.
    async fn rank_own(&self) -> Result<RankReport, CommandError> {
        let progress = Progress::over(1);
        let graphs = self.subject.selection.read(&self.subject.graph, &progress)?.graphs;
        let draw =
            |graph: &NumberedGraph| self.subject.draw.configurations(&self.subject.graph, &graph.measured);
        let drawn: Vec<_> = graphs.iter().map(draw).collect::<Result<_, _>>()?;
        let jobs = graphs.iter().zip(&drawn).filter_map(|(graph, drawn)| match drawn {
            Some((configurations, drawn)) => Some(Job::drawn(graph, configurations, *drawn)),
            None => Job::of_file(graph),
        });
        self.rank(&jobs.collect::<Vec<_>>(), &progress).await
    }

    async fn rank(&self, jobs: &[Job<'_>], progress: &Progress) -> Result<RankReport, CommandError> {
        let client = self.subject.server.connect().await?;
        let mut graphs = Vec::with_capacity(jobs.len());
        for job in jobs {
            graphs.push(self.rank_one(&client, job).await?);
            progress.advance();
        }
        Ok(RankReport { graphs })
    }

    async fn rank_one(&self, client: &Client, job: &Job<'_>) -> Result<GraphRanking, CommandError> {
        let graph = GraphHandle::of(job.measured);
        let request = RankRequest::new(&graph, job.configurations)
            .model(self.subject.model.model.clone())
            .top(self.top)
            .explain(self.explain);
        let learned = self.subject.measurements.read(&job.measured.graph)?;
        let request = request.adapt(learned.map(|learned| learned.adapt));
        let request = if self.allow_partial { request.allow_partial() } else { request };
        let start = Instant::now();
        let ranking = client.rank(&request).await;
        let ranking =
            ranking.map_err(|source| CommandError::graph(&self.subject.graph, job.module, source))?;
        Ok(GraphRanking::of(job, ranking, start.elapsed()))
    }
}
