//! `hlorank rank`: ranks the configurations to measure first.

mod page;
mod report;
mod text;

use std::{path::PathBuf, time::Instant};

use clap::Args;
use hlorank_client::{Adapt, Client, GraphHandle, RankRequest};

use self::{
    page::Section,
    report::{GraphRanking, RankReport},
};
use super::{
    draw::CONFIGURATIONS,
    error::CommandError,
    explain::{Explanation, Ranked},
    job::{Job, Loaded},
    output::Format,
    progress::Progress,
    subject::Subject,
};

const EXAMPLES: &str = "\
Examples:
  hlorank rank --graph kernels.pb --top 5
  hlorank rank --graph module.hlo.txt --random 1000 --seed 1
  hlorank rank --graph module.hlo.txt --configs candidates.json --json
  hlorank rank --graph program.hlo.txt --task fusion --random 1000 --explain
  hlorank rank --graph kernels.pb --module 3 --model tile-iree-cpu@canary
  hlorank rank --graph module.hlo.txt --random 1000 --measured measured.json
  hlorank rank --graph module.hlo.txt --html report.html";

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
    /// Also write a page that explains the ranking
    ///
    /// The file contains everything that a browser needs: the ranking, the segments or kernels as drawings, what each does
    /// to the score of the best, the default and the worst, and measured run times if there are any.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Rank {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let progress = Progress::over(1);
        // Files are read before the connection is opened, so a wrong one is reported at once.
        let loaded = self.subject.load(&progress)?;
        let client = self.subject.server.connect().await?;
        let mut graphs = Vec::new();
        let mut sections = Vec::new();
        for job in loaded.iter().filter_map(Loaded::job) {
            let (ranking, section) = self.rank(&client, &job).await?;
            graphs.push(ranking);
            sections.extend(section);
            progress.advance();
        }
        if let Some(path) = &self.html {
            page::write(path, &graphs, &sections)?;
        }
        Ok(format.print(&RankReport { graphs })?)
    }

    /// Ranks the configurations of a graph, and explains the ranking if there will be a page.
    async fn rank(
        &self,
        client: &Client,
        job: &Job<'_>,
    ) -> Result<(GraphRanking, Option<Section>), CommandError> {
        let graph = GraphHandle::of(job.measured);
        let learned = self.subject.measurements.read(&job.measured.graph)?;
        let adapt = learned.map(|learned| learned.adapt);
        let request = self.request(&graph, job, adapt.clone());
        let path = &self.subject.graph;
        let start = Instant::now();
        let ranking = client.rank(&request).await;
        let ranking = ranking.map_err(|source| CommandError::graph(path, job.module, source))?;
        // The calls of an explanation are not part of the time that the ranking took.
        let round_trip = start.elapsed();
        let ranked = Ranked {
            client,
            path,
            job,
            graph: &graph,
            adapt,
            ranking: &ranking,
        };
        let section = self.section(&ranked).await?;
        Ok((GraphRanking::of(job, ranking, round_trip), section))
    }

    async fn section(&self, ranked: &Ranked<'_>) -> Result<Option<Section>, CommandError> {
        if self.html.is_none() {
            return Ok(None);
        }
        let explanation = Explanation::of(ranked).await?;
        let scores = &ranked.ranking.scores;
        Ok(Some(Section::of(ranked.job, scores, explanation)))
    }

    fn request<'a>(
        &self,
        graph: &'a GraphHandle,
        job: &Job<'_>,
        adapt: Option<Adapt>,
    ) -> RankRequest<'a> {
        let mut request = RankRequest::new(graph, job.configurations)
            .model(self.subject.model.model.clone())
            .target(self.subject.measurements.target())
            .top(self.top)
            .explain(self.explain)
            .adapt(adapt);
        if self.allow_partial {
            request = request.allow_partial();
        }
        if self.html.is_some() {
            // The page plots all configurations and explains the worst. The ranking has the best.
            request = request.with_scores();
        }
        request
    }
}
