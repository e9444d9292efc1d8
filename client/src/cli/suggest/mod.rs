//! `hlorank suggest`: proposes which configurations to measure next.

mod report;

use clap::{Args, ValueEnum, value_parser};
use hlorank_client::{GraphHandle, SuggestRequest, SuggestionSource};
use hlorank_graph::Configurations;

use self::report::SuggestReport;
pub(crate) use self::report::reason;
use super::{
    configuration,
    draw::{CONFIGURATIONS, Drawn},
    error::CommandError,
    input::NumberedGraph,
    output::Format,
    progress::Progress,
    subject::Subject,
};

const EXAMPLES: &str = "\
Examples:
  hlorank suggest --graph module.hlo.txt --random 1000
  hlorank suggest --graph module.hlo.txt --random 1000 --measured measured.json --source segments
  hlorank suggest --graph kernels.pb --module 3 --measured measured.json --count 8 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Suggest {
    #[command(flatten)]
    subject: Subject,
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
        let subject = &self.subject;
        let graph = subject.selection.read_one(&subject.graph, &progress)?;
        let (candidates, drawn) = self.candidates(&graph)?;
        let learned = subject.measurements.read(&graph.measured.graph)?;
        let handle = GraphHandle::of(&graph.measured);
        let mut request = SuggestRequest::new(&handle, &candidates)
            .model(subject.model.model.as_ref())
            .target(subject.measurements.target())
            .count(self.count)
            .source(self.source.into());
        if let Some(learned) = &learned {
            let since = learned.since_improvement;
            request = request
                .adapt(Some(&learned.adapt))
                .since_improvement(since, subject.draw.seed());
        }
        let client = subject.server.connect().await?;
        let suggested = client.suggest(&request).await;
        let suggested = suggested
            .map_err(|source| CommandError::graph(&subject.graph, graph.module, source))?;
        let report = SuggestReport::of(&graph.measured, &candidates, drawn, suggested);
        Ok(format.print(&report)?)
    }

    /// Returns the configurations of `--configs`, drawn ones, or those of the file.
    fn candidates(
        &self,
        graph: &NumberedGraph,
    ) -> Result<(Configurations, Option<Drawn>), CommandError> {
        if let Some(configs) = &self.subject.configs {
            return Ok((configuration::read(configs, &graph.measured.graph)?, None));
        }
        if let Some((drawn, report)) = self
            .subject
            .draw
            .configurations(&self.subject.graph, &graph.measured)?
        {
            return Ok((drawn, Some(report)));
        }
        let own = graph
            .measured
            .measurements
            .as_ref()
            .map(|measured| measured.configurations.clone());
        own.map(|own| (own, None))
            .ok_or_else(|| CommandError::NoTiles {
                path: self.subject.graph.display().to_string(),
            })
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
