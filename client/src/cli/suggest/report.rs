use std::fmt::{self, Display, Formatter};

use hlorank_client::{Suggestion, SuggestionReason, Suggestions};
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
        // A combination is none of the candidates, and so it has no number among them.
        let combined = suggested.combinations.map(Configurations::Layout);
        let from = combined.as_ref().unwrap_or(candidates);
        let slots = graph.graph.configurable();
        let suggestion = |each: &Suggestion| SuggestedConfiguration {
            number: combined.is_none().then_some(each.config),
            ..SuggestedConfiguration::of(each, from, slots)
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

impl SuggestedConfiguration {
    fn of(suggestion: &Suggestion, from: &Configurations, slots: &[u32]) -> Self {
        let config = suggestion.config;
        Self {
            number: None,
            reason: reason(suggestion.reason),
            score: suggestion.score,
            predicted: prediction(suggestion),
            expected_improvement: suggestion.expected_improvement,
            configuration: ConfigurationForm::of(from, slots, config),
            short: from.batch().describe(config, slots),
        }
    }
}

/// Returns the predicted run time of a suggestion, if the server learned from measurements.
pub(crate) fn prediction(suggestion: &Suggestion) -> Option<Prediction> {
    let seconds = suggestion.predicted_seconds;
    let log_sd = suggestion.log_sd;
    // No run time is 0, which the wire format sends for a missing number.
    (seconds > 0.0).then_some(Prediction { seconds, log_sd })
}

/// Returns the words for a reason.
pub(crate) fn reason(reason: SuggestionReason) -> &'static str {
    match reason {
        SuggestionReason::Model => "model",
        SuggestionReason::ExpectedImprovement => "expected improvement",
        SuggestionReason::Random => "random",
        // A newer server may have reasons that this program does not know.
        _ => "other",
    }
}

impl Display for SuggestReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.heading())?;
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

const COLUMNS: [(&str, Align); 5] = [
    ("measure", Align::Right),
    ("number", Align::Right),
    ("reason", Align::Left),
    ("predicted", Align::Right),
    ("configuration", Align::Left),
];

impl SuggestReport {
    fn heading(&self) -> String {
        let candidates = counted(self.candidates, "candidate");
        let name = printable(&self.name);
        let model = printable(&self.model);
        format!("{name}: {candidates}, {model}")
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&COLUMNS);
        for (place, each) in self.suggestions.iter().enumerate() {
            let number = each.number.map(|number| number.to_string());
            let predicted = each.predicted.map(|predicted| predicted.to_string());
            table.row([
                (place + 1).to_string(),
                number.unwrap_or_else(|| "-".to_owned()),
                each.reason.to_owned(),
                predicted.unwrap_or_else(|| "-".to_owned()),
                each.short.clone(),
            ]);
        }
        table
    }
}
