use std::fmt::{self, Display, Formatter};

use clap::Args;
use hlorank_client::{Adapt, Client, GraphHandle, RankRequest, Ranking};
use serde::Serialize;

use super::explanation::{Explanation, Ranked};
use crate::cli::{
    error::CommandError,
    job::{Job, Loaded},
    output::{Format, counted, printable},
    progress::Progress,
    subject::Subject,
};

const EXAMPLES: &str = "\
Examples:
  hlorank explain --graph module.hlo.txt --random 1000
  hlorank explain --graph kernels.pb --module 3
  hlorank explain --graph program.hlo.txt --task fusion --json";

/// The arguments of `hlorank explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    #[command(flatten)]
    subject: Subject,
}

#[derive(Debug, Serialize)]
struct ExplainReport {
    graphs: Vec<ExplainedGraph>,
}

#[derive(Debug, Serialize)]
struct ExplainedGraph {
    module: usize,
    name: String,
    kind: String,
    nodes: usize,
    model: String,
    /// Number of configurations that were ranked.
    configurations: usize,
    #[serde(flatten)]
    explanation: Explanation,
}

impl Explain {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let progress = Progress::over(1);
        let loaded = self.subject.load(&progress)?;
        let client = self.subject.server.connect().await?;
        let mut graphs = Vec::new();
        for job in loaded.iter().filter_map(Loaded::job) {
            graphs.push(self.explain(&client, &job).await?);
            progress.advance();
        }
        Ok(format.print(&ExplainReport { graphs })?)
    }

    async fn explain(
        &self,
        client: &Client,
        job: &Job<'_>,
    ) -> Result<ExplainedGraph, CommandError> {
        let graph = GraphHandle::of(job.measured);
        let learned = self.subject.measurements.read(&job.measured.graph)?;
        let adapt = learned.map(|learned| learned.adapt);
        let ranking = self.rank(client, job, &graph, adapt.clone()).await?;
        let ranked = Ranked {
            client,
            path: &self.subject.graph,
            job,
            graph: &graph,
            adapt,
            ranking: &ranking,
        };
        let explanation = Explanation::of(&ranked).await?;
        Ok(ExplainedGraph::of(job, &ranking, explanation))
    }

    async fn rank(
        &self,
        client: &Client,
        job: &Job<'_>,
        graph: &GraphHandle,
        adapt: Option<Adapt>,
    ) -> Result<Ranking, CommandError> {
        // The best is the first of the ranking, and the worst is found by the scores.
        let request = RankRequest::new(graph, job.configurations)
            .model(self.subject.model.model.clone())
            .target(self.subject.measurements.target())
            .top(1)
            .adapt(adapt)
            .with_scores();
        let ranking = client.rank(&request).await;
        ranking.map_err(|source| CommandError::graph(&self.subject.graph, job.module, source))
    }
}

impl ExplainedGraph {
    fn of(job: &Job<'_>, ranking: &Ranking, explanation: Explanation) -> Self {
        let graph = &job.measured.graph;
        Self {
            module: job.module,
            name: job.measured.name.clone(),
            kind: graph.task().to_string(),
            nodes: graph.len(),
            model: ranking.model.to_string(),
            configurations: job.configurations.len(),
            explanation,
        }
    }
}

impl Display for ExplainReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, graph) in self.graphs.iter().enumerate() {
            let gap = if position > 0 { "\n" } else { "" };
            write!(formatter, "{gap}{graph}")?;
        }
        Ok(())
    }
}

impl Display for ExplainedGraph {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{}: {}, {}, {}, {}\n",
            printable(&self.name),
            self.kind,
            counted(self.nodes, "node"),
            counted(self.configurations, "configuration"),
            printable(&self.model),
        )?;
        write!(formatter, "{}", self.explanation)
    }
}
