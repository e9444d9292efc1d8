//! `hlorank suggest`: proposes which configurations to measure next.

mod report;

use clap::{Args, ValueEnum, value_parser};
use hlorank_client::{GraphHandle, SuggestRequest, SuggestionSource};
use hlorank_graph::Configurations;

use self::report::SuggestReport;
pub(crate) use self::report::{prediction, reason};
use super::{
    configuration,
    draw::{CONFIGURATIONS, Drawn},
    error::CommandError,
    input::NumberedGraph,
    measured::Learned,
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
        let request = self.request(&handle, &candidates, learned.as_ref());
        let client = subject.server.connect().await?;
        let suggested = client.suggest(&request).await;
        let suggested = suggested
            .map_err(|source| CommandError::graph(&subject.graph, graph.module, source))?;
        let report = SuggestReport::of(&graph.measured, &candidates, drawn, suggested);
        Ok(format.print(&report)?)
    }

    fn request<'a>(
        &self,
        graph: &'a GraphHandle,
        candidates: &Configurations,
        learned: Option<&Learned>,
    ) -> SuggestRequest<'a> {
        let subject = &self.subject;
        let request = SuggestRequest::new(graph, candidates)
            .model(subject.model.model.as_ref())
            .target(subject.measurements.target())
            .count(self.count)
            .source(self.source.into());
        let Some(learned) = learned else {
            return request;
        };
        // After measurements in vain the server draws at random. The seed makes a call repeatable.
        request
            .adapt(Some(&learned.adapt))
            .since_improvement(learned.since_improvement, subject.draw.seed())
    }

    /// Returns the configurations of `--configs`, drawn ones, or those of the file.
    fn candidates(
        &self,
        graph: &NumberedGraph,
    ) -> Result<(Configurations, Option<Drawn>), CommandError> {
        let path = &self.subject.graph;
        let measured = &graph.measured;
        if let Some(configs) = &self.subject.configs {
            return Ok((configuration::read(configs, &measured.graph)?, None));
        }
        if let Some((drawn, report)) = self.subject.draw.configurations(path, measured)? {
            return Ok((drawn, Some(report)));
        }
        // Nothing is drawn only if the file has configurations.
        let own = measured.measurements.as_ref();
        let own = own.map(|measured| (measured.configurations.clone(), None));
        own.ok_or_else(|| CommandError::NoTiles {
            path: path.display().to_string(),
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
