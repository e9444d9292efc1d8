//! `hlorank space`: a table of configurations of a flat space, some of which have a time.

mod columns;
mod csv;
mod report;
mod subject;
mod table;

use clap::{Args, Subcommand, value_parser};
use hlorank_client::{RankRequest, SuggestRequest};

use self::{
    report::{KeptReport, SpaceReport},
    subject::{Sources, SpaceFile},
};
use super::{error::CommandError, output::Format};

const EXAMPLES: &str = "\
Examples:
  hlorank space suggest gemm.csv --target 'my board, nvcc 12.4' --count 8
  hlorank space report gemm.csv --target 'my board, nvcc 12.4'
  hlorank space rank gemm.csv --target 'my board, nvcc 12.4' --other-target 'old board, nvcc 12.4'";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SpaceCommand {
    /// Propose which rows without a time to measure next
    Suggest(Suggest),
    /// Rank the rows without a time
    Rank(Rank),
    /// Report the rows with a time or a failure to a server that keeps measurements
    Report(Report),
}

#[derive(Debug, Args)]
pub(crate) struct Suggest {
    #[command(flatten)]
    space: SpaceFile,
    #[command(flatten)]
    sources: Sources,
    /// Number of rows to suggest
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    count: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Rank {
    #[command(flatten)]
    space: SpaceFile,
    #[command(flatten)]
    sources: Sources,
    /// Number of best rows to show; 0 shows all
    #[arg(long, value_name = "K", default_value_t = 10)]
    top: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    space: SpaceFile,
}

impl SpaceCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Suggest(suggest) => suggest.run(format).await,
            Self::Rank(rank) => rank.run(format).await,
            Self::Report(report) => report.run(format).await,
        }
    }
}

impl Suggest {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let rows = self.space.read()?;
        // The rows with a time are what the server learns from, and the others are the candidates.
        let (candidates, adapt) = self.space.candidates_of(&rows, &self.sources)?;
        let request = SuggestRequest::new(&rows.graph, &candidates)
            .count(self.count)
            .adapt(Some(&adapt));
        let client = self.space.server.connect().await?;
        let answer = client.suggest(&request).await;
        let answer = answer.map_err(|source| self.space.failed(source))?;
        Ok(format.print(&SpaceReport::of_suggestions(rows, &answer))?)
    }
}

impl Rank {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let rows = self.space.read()?;
        let (candidates, adapt) = self.space.candidates_of(&rows, &self.sources)?;
        let request = RankRequest::new(&rows.graph, &candidates)
            .top(self.top)
            .adapt(Some(adapt));
        let client = self.space.server.connect().await?;
        let ranking = client.rank(&request).await;
        let ranking = ranking.map_err(|source| self.space.failed(source))?;
        Ok(format.print(&SpaceReport::of_ranking(rows, &ranking))?)
    }
}

impl Report {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let rows = self.space.read()?;
        let parts = rows.reports(&self.space.target);
        let parts = parts.map_err(|source| self.space.wrong(source))?;
        let client = self.space.server.connect().await?;
        let mut report = KeptReport::default();
        // The server counts a measurement that it has already as known, so a report that fails
        // between two parts can be repeated as a whole.
        for part in parts {
            let reported = client.report_measurements(&rows.graph, &part).await;
            report.add(&reported.map_err(|source| self.space.failed(source))?);
        }
        Ok(format.print(&report)?)
    }
}
