use std::fmt::{self, Display, Formatter};

use hlorank_client::{SuggestionReason, Suggestions};
use hlorank_graph::{Configurations, MeasuredGraph};
use serde::Serialize;

use crate::cli::{
    configuration::ConfigurationForm,
    draw::Drawn,
    lesson::Lesson,
    measured::Prediction,
    output::{Align, Table, counted, printable},
};

/// The suggestions for one graph.
#[derive(Debug, Serialize)]
pub(super) struct SuggestReport {
    name: String,
    graph_hash: String,
    model: String,
    /// What was drawn, if the candidates were.
    drawn: Option<Drawn>,
    candidates: usize,
    suggestions: Vec<SuggestedConfiguration>,
    /// What the server learned from `--measured`.
    learned: Option<Lesson>,
}

/// A configuration to measure.
#[derive(Debug, Serialize)]
struct SuggestedConfiguration {
    /// Number of the configuration among the candidates, if it is one of them.
    number: Option<usize>,
    reason: &'static str,
    score: f32,
    predicted: Option<Prediction>,
    expected_improvement: f32,
    configuration: ConfigurationForm,
    #[serde(skip)]
    short: String,
}

impl SuggestReport {
    pub(super) fn of(
        graph: &MeasuredGraph,
        candidates: &Configurations,
        drawn: Option<Drawn>,
        suggested: Suggestions,
    ) -> Self {
        let combined = suggested.combinations.map(Configurations::Layout);
        let from = combined.as_ref().unwrap_or(candidates);
        let is_combined = combined.is_some();
        let configurable = graph.graph.configurable();
        let suggestion = |each: &hlorank_client::Suggestion| SuggestedConfiguration {
            number: (!is_combined).then_some(each.config),
            reason: reason(each.reason),
            score: each.score,
            predicted: (each.predicted_seconds > 0.0).then_some(Prediction {
                seconds: each.predicted_seconds,
                log_sd: each.log_sd,
            }),
            expected_improvement: each.expected_improvement,
            configuration: ConfigurationForm::of(from, configurable, each.config),
            short: from.batch().describe(each.config, configurable),
        };
        Self {
            name: graph.name.clone(),
            graph_hash: suggested.graph_hash.to_string(),
            model: suggested.model.to_string(),
            drawn,
            candidates: candidates.len(),
            suggestions: suggested.suggestions.iter().map(suggestion).collect(),
            learned: suggested.adaptation.as_ref().map(Lesson::from),
        }
    }
}

/// Returns the words for a reason.
pub(crate) fn reason(reason: SuggestionReason) -> &'static str {
    match reason {
        SuggestionReason::Model => "model",
        SuggestionReason::ExpectedImprovement => "expected improvement",
        SuggestionReason::Random => "random",
        _ => "other",
    }
}

impl Display for SuggestReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let candidates = counted(self.candidates, "candidate");
        writeln!(
            formatter,
            "{}: {candidates}, {}",
            printable(&self.name),
            printable(&self.model)
        )?;
        if let Some(drawn) = &self.drawn {
            writeln!(formatter, "{drawn}")?;
        }
        if self.suggestions.is_empty() {
            return writeln!(formatter, "\nAll candidates were measured.");
        }
        writeln!(formatter, "\n{}", self.table())?;
        self.learned
            .as_ref()
            .map_or(Ok(()), |learned| writeln!(formatter, "{learned}"))
    }
}

impl SuggestReport {
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("measure", Align::Right),
            ("number", Align::Right),
            ("reason", Align::Left),
            ("predicted", Align::Right),
            ("configuration", Align::Left),
        ]);
        for (place, each) in self.suggestions.iter().enumerate() {
            table.row([
                (place + 1).to_string(),
                each.number
                    .map_or_else(|| "-".to_owned(), |number| number.to_string()),
                each.reason.to_owned(),
                each.predicted
                    .map_or_else(|| "-".to_owned(), |predicted| predicted.to_string()),
                each.short.clone(),
            ]);
        }
        table
    }
}
