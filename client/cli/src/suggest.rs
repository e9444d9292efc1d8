//! `hlorank suggest`: proposes which configurations to measure next.

use std::fmt::{self, Display, Formatter};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use hlorank_client::{GraphHandle, SuggestRequest, Suggestion, SuggestionSource};
use hlorank_graph::Configurations;
use serde::Serialize;

use crate::{
    configuration::ConfigurationForm,
    error::CommandError,
    input::Subject,
    lesson::Lesson,
    measured::Prediction,
    output::{Format, Table, counted, or_dash, printable, words},
    progress::Progress,
};

const EXAMPLES: &str = "\
Examples:
  hlorank suggest --graph module.hlo.txt --configs candidates.json
  hlorank suggest --graph module.hlo.txt --configs candidates.json --measured measured.json --source segments
  hlorank suggest --graph kernels.pb --module 3 --measured measured.json --count 8 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Suggest {
    #[command(flatten)]
    subject: Subject,
    /// Number of configurations to suggest
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    #[arg(help_heading = "Graph and model")]
    count: u32,
    /// What to choose from
    ///
    /// The configurations themselves, or all combinations of the layouts that segments or nodes of the graph have in them
    #[arg(long, value_name = "SOURCE", default_value = "candidates", value_parser = source())]
    #[arg(help_heading = "Graph and model")]
    source: SuggestionSource,
}

fn source() -> impl TypedValueParser<Value = SuggestionSource> {
    let names = PossibleValuesParser::new(["candidates", "segments", "nodes"]);
    names.map(|name| match name.as_str() {
        "segments" => SuggestionSource::Segments,
        "nodes" => SuggestionSource::Nodes,
        _ => SuggestionSource::Batch,
    })
}

/// The suggestions for one graph.
#[derive(Debug, Serialize)]
struct SuggestReport {
    name: String,
    graph_hash: String,
    model: String,
    candidates: usize,
    suggestions: Vec<SuggestedConfiguration>,
    /// What the server learned from measurements.
    learned: Option<Lesson>,
}

/// A configuration to measure.
#[derive(Debug, Serialize)]
struct SuggestedConfiguration {
    /// Number of the configuration among the candidates, if it is one of them.
    number: Option<usize>,
    reason: String,
    score: f32,
    predicted: Option<Prediction>,
    expected_improvement: f32,
    configuration: ConfigurationForm,
    #[serde(skip)]
    short: String,
}

impl Suggest {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let subject = &self.subject;
        let loaded = subject.load_one(&Progress::over(1))?;
        let job = subject.job(&loaded)?;
        let handle = GraphHandle::from_measured(job.measured);
        let mut request = SuggestRequest::new(&handle, job.configurations)
            .model(subject.model.model.clone())
            .target(subject.measurements.target())
            .count(self.count)
            .source(self.source);
        if let Some(learned) = &job.learned {
            // After measurements in vain the server draws at random. One seed makes a call repeatable.
            request = request
                .adapt(Some(&learned.adapt))
                .since_improvement(learned.since_improvement, 0);
        }
        let client = subject.server.connect().await?;
        let suggested = client.suggest(&request).await;
        let suggested =
            suggested.map_err(|source| CommandError::graph(&subject.graph, job.module, source))?;
        // A combination is none of the candidates, and so it has no number among them.
        let combined = suggested.combinations.map(Configurations::Layout);
        let from = combined.as_ref().unwrap_or(job.configurations);
        let slots = job.measured.graph.configurable();
        let suggestion = |each: &Suggestion| SuggestedConfiguration {
            number: combined.is_none().then_some(each.config),
            ..SuggestedConfiguration::new(each, from, slots)
        };
        Ok(format.print(&SuggestReport {
            name: job.measured.name.clone(),
            graph_hash: suggested.graph_hash.to_string(),
            model: suggested.model.to_string(),
            candidates: job.configurations.len(),
            suggestions: suggested.suggestions.iter().map(suggestion).collect(),
            learned: suggested.adaptation.as_ref().map(Lesson::from),
        })?)
    }
}

impl SuggestedConfiguration {
    fn new(suggestion: &Suggestion, from: &Configurations, slots: &[u32]) -> Self {
        let config = suggestion.config;
        let prediction = Prediction {
            seconds: suggestion.predicted_seconds,
            log_sd: suggestion.log_sd,
        };
        Self {
            number: None,
            // A newer server may have reasons that this program does not know.
            reason: words(suggestion.reason.as_str_name(), "SUGGESTION_REASON_")
                .unwrap_or_else(|| "other".to_owned()),
            score: suggestion.score,
            // No run time is 0, which the wire format sends for a missing number.
            predicted: (prediction.seconds > 0.0).then_some(prediction),
            expected_improvement: suggestion.expected_improvement,
            configuration: ConfigurationForm::new(from, slots, config),
            short: from.batch().describe(config, slots),
        }
    }
}

impl Display for SuggestReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let candidates = counted(self.candidates, "candidate");
        let [name, model] = [&self.name, &self.model].map(|name| printable(name));
        writeln!(formatter, "{name}: {candidates}, {model}\n")?;
        if self.suggestions.is_empty() {
            return writeln!(formatter, "All candidates were measured.");
        }
        let mut table = Table::new(&[
            ">measure",
            ">number",
            "reason",
            ">predicted",
            "configuration",
        ]);
        for (each, place) in self.suggestions.iter().zip(1..) {
            let place: usize = place;
            table.row([
                place.to_string(),
                or_dash(each.number),
                each.reason.clone(),
                or_dash(each.predicted),
                each.short.clone(),
            ]);
        }
        writeln!(formatter, "{table}")?;
        let learned = self.learned.as_ref();
        learned.map_or(Ok(()), |learned| writeln!(formatter, "{learned}"))
    }
}
