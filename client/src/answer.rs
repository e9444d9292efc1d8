//! Checks answers before they are used: a faulty server or proxy may answer anything.

use hlorank_graph::Digest;
use hlorank_proto::v1::{ModelSelector, RankConfigsResponse};

use crate::ModelReference;

/// How an answer violates the wire contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidAnswer(String);

/// Refuses an answer.
pub(crate) fn invalid<T>(violation: impl Into<String>) -> Result<T, InvalidAnswer> {
    Err(InvalidAnswer::new(violation))
}

impl InvalidAnswer {
    pub(crate) fn new(violation: impl Into<String>) -> Self {
        Self(violation.into())
    }
}

/// What a request asked for, which its answer must contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedAnswer {
    /// Number of configurations that were sent.
    pub(crate) configs: usize,
    /// Maximum length of the ranking; 0 for all.
    pub(crate) top: u32,
    /// Whether the score of every configuration was requested.
    pub(crate) scores: bool,
    /// Whether fewer configurations may be ranked.
    pub(crate) partial: bool,
    /// Maximum number of configurations whose kernels are returned.
    pub(crate) explained: u32,
    /// Whether only a model can answer.
    pub(crate) needs_model: bool,
}

impl ExpectedAnswer {
    /// Checks that an answer contains what was asked for, and nothing impossible.
    pub(crate) fn check(self, answer: &RankConfigsResponse) -> Result<(), InvalidAnswer> {
        // Each check relies on those before it: the number of scored configurations bounds the
        // numbers in the ranking.
        let scored = answer.scored_configs as usize;
        // Even a partial ranking has at least one configuration: a call that had time for none
        // fails.
        let is_part = self.partial && (1..self.configs).contains(&scored);
        if scored != self.configs && !is_part {
            return invalid(format!(
                "{scored} of {} configurations were scored",
                self.configs
            ));
        }
        check_scores(&answer.scores, 0, if self.scores { scored } else { 0 })?;
        let found = answer.ranking.len();
        let expected = match self.top as usize {
            0 => scored,
            top => top.min(scored),
        };
        if found != expected {
            return invalid(format!(
                "the ranking has {found} configurations instead of {expected}"
            ));
        }
        let count = answer.ranking_scores.len();
        if found != count {
            return invalid(format!(
                "the ranking has {found} configurations, but {count} scores"
            ));
        }
        check_ranking(answer, scored)?;
        // Every ranked configuration has a predicted time, or none has. Only those that rest on
        // measurements have deviations.
        let seconds = answer.predicted_seconds.len();
        let deviations = answer.log_sd.len();
        if seconds != 0 && seconds != found || deviations != 0 && deviations != seconds {
            return invalid(format!(
                "the ranking has {found} configurations, but {seconds} predicted times and {deviations} deviations"
            ));
        }
        let found = answer.kernels.len();
        let expected = answer.ranking.len().min(self.explained as usize);
        if found != expected {
            return invalid(format!(
                "it has the kernels of {found} configurations instead of {expected}"
            ));
        }
        Ok(())
    }
}

/// Checks that the ranking has different configurations, below the number of scored ones, by ascending score, and that the list
/// of all scores, if there is one, has the same scores.
#[expect(clippy::float_cmp, reason = "both are copies of one number")]
fn check_ranking(answer: &RankConfigsResponse, scored: usize) -> Result<(), InvalidAnswer> {
    let mut is_ranked = vec![false; scored];
    let mut highest = f32::NEG_INFINITY;
    for (&config, &score) in answer.ranking.iter().zip(&answer.ranking_scores) {
        let config = config as usize;
        match is_ranked.get_mut(config) {
            None => {
                return invalid(format!(
                    "the ranking contains configuration {config}, but only {scored} were scored"
                ));
            }
            Some(true) => {
                return invalid(format!("the ranking contains configuration {config} twice"));
            }
            Some(is_ranked) => *is_ranked = true,
        }
        // Scores that are no numbers are refused first, because every comparison with them is false.
        if !is_score(score) {
            return Err(not_a_score(config));
        }
        if score < highest {
            return invalid(format!(
                "the ranking has configuration {config} after one with a higher score"
            ));
        }
        highest = score;
        if answer.scores.get(config).is_some_and(|&same| same != score) {
            return invalid(format!("configuration {config} has two different scores"));
        }
    }
    Ok(())
}

/// Checks that there are as many scores as expected, and that all are numbers. `first` is the number of the first
/// configuration.
pub(crate) fn check_scores(
    scores: &[f32],
    first: usize,
    expected: usize,
) -> Result<(), InvalidAnswer> {
    if scores.len() != expected {
        let found = scores.len();
        return invalid(format!("it has {found} scores instead of {expected}"));
    }
    match scores.iter().position(|&score| !is_score(score)) {
        Some(position) => Err(not_a_score(first + position)),
        None => Ok(()),
    }
}

/// Returns the violation of a score that is not a number, or minus infinity.
pub(crate) fn not_a_score(config: usize) -> InvalidAnswer {
    InvalidAnswer::new(format!(
        "the score of configuration {config} is not a number, or minus infinity"
    ))
}

/// Whether a score is a number, or that of a configuration with too large a kernel.
pub(crate) fn is_score(score: f32) -> bool {
    score.is_finite() || score == f32::INFINITY
}

/// Reads a graph hash of 32 bytes.
pub(crate) fn graph_hash(bytes: &[u8]) -> Result<Digest, InvalidAnswer> {
    bytes.try_into().map(Digest).map_err(|_| {
        let found = bytes.len();
        InvalidAnswer::new(format!("the graph hash has {found} bytes instead of 32"))
    })
}

/// Reads the model version that answered, which has no name if measurements alone answered.
pub(crate) fn model(
    selector: Option<ModelSelector>,
    needs_model: bool,
) -> Result<ModelReference, InvalidAnswer> {
    let selector = selector.unwrap_or_default();
    if needs_model && selector.name.is_empty() {
        return invalid("it lacks the name of the model");
    }
    Ok(selector.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_measurements_alone_names_no_model() {
        assert_eq!(model(None, false).unwrap().to_string(), "no model");
    }
}
