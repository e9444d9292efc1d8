//! `hlorank report`: a ranking, and what makes the best and the worst configuration differ from the default.
//!
//! A report is one value. It is printed as text, as JSON, or as a page.

mod explanation;
mod graph_report;
mod page;
mod parts;

use std::io;

use clap::Args;
use hlorank_client::GraphHandle;

use self::{
    explanation::Explanation,
    graph_report::{FileReport, GraphReport},
};
use crate::{
    error::CommandError,
    input::Subject,
    output::{Format, write_lines},
    progress::Progress,
    rank::{GraphRanking, Top},
};

const EXAMPLES: &str = "\
Examples:
  hlorank report --graph kernels.pb --module 3
  hlorank report --graph module.hlo.txt --configs candidates.json --html > report.html
  hlorank report --graph program.hlo.txt --task fusion --configs fusions.json --json";

/// The arguments of `hlorank report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    top: Top,
    /// Print a page of HTML instead of text
    ///
    /// It contains everything that a browser needs, and plots measured run times if there are any.
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

impl Report {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let subject = &self.subject;
        let progress = Progress::over(1);
        let loaded = subject.load(&progress)?;
        let jobs = loaded.iter().map(|loaded| subject.job(loaded));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let client = subject.server.connect().await?;
        let mut graphs = Vec::new();
        for job in &jobs {
            let handle = GraphHandle::from_measured(job.measured);
            let request = subject.request(&handle, job, job.configurations);
            // The best are the first of the ranking, and the worst is found by the scores.
            let request = request.top(self.top.top).with_scores();
            let (ranking, time) = subject.rank(&client, job, &request).await?;
            let explanation = Explanation::new(subject, &client, job, &handle, &ranking).await?;
            let point = |(config, &score): (usize, &f32)| {
                // A configuration with a kernel beyond the model's limits has an infinite score, for
                // which an axis has no place.
                let time = job.run_time(config).filter(|_| score.is_finite());
                Some((score, time?))
            };
            let points = ranking
                .scores
                .iter()
                .enumerate()
                .filter_map(point)
                .collect();
            graphs.push(GraphReport {
                ranking: GraphRanking::new(job, ranking, time),
                explanation,
                points,
            });
            progress.advance();
        }
        let report = FileReport { graphs };
        if self.html {
            return Ok(write_lines(
                io::stdout().lock(),
                &page::page(&report.graphs),
            )?);
        }
        Ok(format.print(&report)?)
    }
}
