//! `hlorank eval`: compares the rankings of a server with measured run times.

mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use hlorank_client::{Client, ClientError, GraphHandle, RankRequest, Ranking};
use hlorank_graph::{Configurations, MeasuredGraph};

use self::report::{EvalReport, GraphQuality};
use super::{
    error::CommandError,
    input::{MEASURED_FILE, MEASURED_FILE_LONG, NumberedGraph, Selection},
    output::Format,
    progress::Progress,
    run_times::RunTimes,
    server::{ModelChoice, Server},
};

const EXAMPLES: &str = "\
Examples:
  hlorank eval measured/*.pb
  hlorank eval measured/*.pb --model layout-xla-cpu@3 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Eval {
    #[arg(value_name = "FILE", required = true, help = MEASURED_FILE, long_help = MEASURED_FILE_LONG)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelChoice,
    /// What was measured: `HARDWARE, COMPILER VERSION, FLAG, ...`
    ///
    /// The server selects the model by it, and says how far to trust the ranking.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    target: String,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    server: Server,
}

impl Eval {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let report = self.evaluate_files().await?;
        if report.graphs.is_empty() {
            return Err(CommandError::NothingMeasured);
        }
        Ok(format.print(&report.with_mean())?)
    }

    async fn evaluate_files(&self) -> Result<EvalReport, CommandError> {
        let client = self.server.connect().await?;
        let mut report = EvalReport::default();
        let progress = Progress::over(self.files.len());
        for file in &self.files {
            self.evaluate_file(&client, file, &mut report, &progress)
                .await?;
        }
        Ok(report)
    }

    async fn evaluate_file(
        &self,
        client: &Client,
        file: &Path,
        report: &mut EvalReport,
        progress: &Progress,
    ) -> Result<(), CommandError> {
        for graph in self.selection.read(file, progress)?.graphs {
            match self.evaluate(client, file, &graph).await? {
                Some(quality) => report.graphs.push(quality),
                None => report.not_measured += 1,
            }
            progress.advance();
        }
        Ok(())
    }

    /// Ranks the configurations of a graph. Returns `None` for a graph without measured run times.
    async fn evaluate(
        &self,
        client: &Client,
        file: &Path,
        graph: &NumberedGraph,
    ) -> Result<Option<GraphQuality>, CommandError> {
        let Some(measurements) = &graph.measured.measurements else {
            return Ok(None);
        };
        // Files without labels, such as the test files of TpuGraphs, have run times that are all 0.
        let Some(times) = RunTimes::of(measurements) else {
            return Ok(None);
        };
        let configurations = &measurements.configurations;
        let ranking = self.rank(client, &graph.measured, configurations).await;
        let ranking = ranking.map_err(|source| CommandError::graph(file, graph.module, source))?;
        Ok(Some(GraphQuality::of(file, graph, &times, &ranking)))
    }

    async fn rank(
        &self,
        client: &Client,
        graph: &MeasuredGraph,
        configurations: &Configurations,
    ) -> Result<Ranking, ClientError> {
        let handle = GraphHandle::of(graph);
        // The scores in the order sent are matched with the run times, so the order of the ranking
        // is not needed.
        let request = RankRequest::new(&handle, configurations)
            .model(self.model.model.clone())
            .target(&self.target)
            .top(1)
            .with_scores();
        client.rank(&request).await
    }
}
