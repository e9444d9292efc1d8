//! Checks answers before they are used: a faulty server or proxy may answer anything.

use hlorank_graph::Digest;
use hlorank_proto::v1::{ModelSelector, RankConfigsResponse};

use crate::ModelReference;

/// How an answer violates the wire contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAnswer {
    /// A required field is not set.
    #[error("it lacks {0}")]
    Lacks(&'static str),
    /// The combined configurations are not layouts of the graph.
    #[error("its combinations are no layouts of the graph")]
    Combinations,
    /// A stream has another message at this place.
    #[error("it is not {0}")]
    IsNot(&'static str),
    /// A stream ended before its ranking.
    #[error("the stream ended too early")]
    EndedEarly,
    /// The graph hash has another length.
    #[error("the graph hash has {0} bytes instead of 32")]
    GraphHash(usize),
    /// The number of scored configurations is wrong.
    #[error("{scored} of {sent} configurations were scored")]
    Scored {
        /// Number of configurations that the answer claims to have scored.
        scored: usize,
        /// Number of configurations that were sent.
        sent: usize,
    },
    /// The number of scores is wrong.
    #[error("it has {found} scores instead of {expected}")]
    Scores {
        /// Number of scores in the answer.
        found: usize,
        /// Number of scores that were requested.
        expected: usize,
    },
    /// The length of the ranking is wrong.
    #[error("the ranking has {found} configurations instead of {expected}")]
    Ranking {
        /// Length of the ranking.
        found: usize,
        /// Length that was requested.
        expected: usize,
    },
    /// The ranking and its scores differ in length.
    #[error("the ranking has {configs} configurations, but {scores} scores")]
    RankingScores {
        /// Length of the ranking.
        configs: usize,
        /// Number of its scores.
        scores: usize,
    },
    /// The ranking and its predicted run times differ in length.
    #[error(
        "the ranking has {configs} configurations, but {seconds} predicted times and {deviations} deviations"
    )]
    Predictions {
        /// Length of the ranking.
        configs: usize,
        /// Number of predicted times.
        seconds: usize,
        /// Number of their deviations.
        deviations: usize,
    },
    /// The ranking contains a configuration that was not scored.
    #[error("the ranking contains configuration {config}, but only {scored} were scored")]
    OutOfRange {
        /// Number of the configuration.
        config: usize,
        /// Number of configurations that were scored.
        scored: usize,
    },
    /// The ranking contains a configuration twice.
    #[error("the ranking contains configuration {0} twice")]
    RankedTwice(usize),
    /// The ranking is not sorted by score.
    #[error("the ranking has configuration {0} after one with a higher score")]
    NotSorted(usize),
    /// A score is not a number, or minus infinity. Infinity is the score of a configuration with too large a kernel.
    #[error("the score of configuration {0} is not a number, or minus infinity")]
    NotAScore(usize),
    /// The kernels are not those of the configurations that were asked for.
    #[error("it has the kernels of {found} configurations instead of {expected}")]
    Kernels {
        /// Number of configurations whose kernels the answer has.
        found: usize,
        /// Number that was asked for.
        expected: usize,
    },
    /// A configuration has one score in the ranking and another among all scores.
    #[error("configuration {0} has two different scores")]
    TwoScores(usize),
    /// There are more suggestions than were requested.
    #[error("it has {found} suggestions, but {asked} were requested")]
    Suggestions {
        /// Number of suggestions in the answer.
        found: usize,
        /// Number that was requested.
        asked: usize,
    },
    /// A suggestion is none of the candidates, or one that is pending or suggested already.
    #[error(
        "it suggests configuration {0}, which was not sent, is pending, or is suggested already"
    )]
    Suggested(usize),
    /// A batch of a stream has the wrong number of its first configuration.
    #[error("the scores of a batch begin at configuration {found} instead of {expected}")]
    First {
        /// Number in the answer.
        found: usize,
        /// Number of configurations that were sent before.
        expected: usize,
    },
}

/// What a request asked for, which its answer must contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
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

impl Asked {
    /// Checks that an answer contains what was asked for, and nothing impossible.
    pub(crate) fn check(self, answer: &RankConfigsResponse) -> Result<(), InvalidAnswer> {
        // Each check relies on those before it: the number of scored configurations bounds the
        // numbers in the ranking.
        let scored = answer.scored_configs as usize;
        // Even a partial ranking has at least one configuration: a call that had time for none
        // fails.
        let is_part = self.partial && (1..self.configs).contains(&scored);
        if scored != self.configs && !is_part {
            return Err(InvalidAnswer::Scored {
                scored,
                sent: self.configs,
            });
        }
        check_scores(&answer.scores, 0, if self.scores { scored } else { 0 })?;
        let found = answer.ranking.len();
        let expected = match self.top as usize {
            0 => scored,
            top => top.min(scored),
        };
        if found != expected {
            return Err(InvalidAnswer::Ranking { found, expected });
        }
        let count = answer.ranking_scores.len();
        if found != count {
            return Err(InvalidAnswer::RankingScores {
                configs: found,
                scores: count,
            });
        }
        check_ranking(answer, scored)?;
        // Every ranked configuration has a predicted time, or none has. Only those that rest on
        // measurements have deviations.
        let seconds = answer.predicted_seconds.len();
        let deviations = answer.log_sd.len();
        if seconds != 0 && seconds != found || deviations != 0 && deviations != seconds {
            return Err(InvalidAnswer::Predictions {
                configs: found,
                seconds,
                deviations,
            });
        }
        let found = answer.kernels.len();
        let expected = answer.ranking.len().min(self.explained as usize);
        if found != expected {
            return Err(InvalidAnswer::Kernels { found, expected });
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
            None => return Err(InvalidAnswer::OutOfRange { config, scored }),
            Some(true) => return Err(InvalidAnswer::RankedTwice(config)),
            Some(is_ranked) => *is_ranked = true,
        }
        // Scores that are no numbers are refused first, because every comparison with them is false.
        if !is_score(score) {
            return Err(InvalidAnswer::NotAScore(config));
        }
        if score < highest {
            return Err(InvalidAnswer::NotSorted(config));
        }
        highest = score;
        if answer.scores.get(config).is_some_and(|&same| same != score) {
            return Err(InvalidAnswer::TwoScores(config));
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
        return Err(InvalidAnswer::Scores {
            found: scores.len(),
            expected,
        });
    }
    match scores.iter().position(|&score| !is_score(score)) {
        Some(position) => Err(InvalidAnswer::NotAScore(first + position)),
        None => Ok(()),
    }
}

/// Whether a score is a number, or that of a configuration with too large a kernel.
pub(crate) fn is_score(score: f32) -> bool {
    score.is_finite() || score == f32::INFINITY
}

/// Reads a graph hash of 32 bytes.
pub(crate) fn graph_hash(bytes: &[u8]) -> Result<Digest, InvalidAnswer> {
    bytes
        .try_into()
        .map(Digest)
        .map_err(|_| InvalidAnswer::GraphHash(bytes.len()))
}

/// Reads the model version that answered, which has no name if measurements alone answered.
pub(crate) fn model(
    selector: Option<ModelSelector>,
    needs_model: bool,
) -> Result<ModelReference, InvalidAnswer> {
    let selector = selector.unwrap_or_default();
    if needs_model && selector.name.is_empty() {
        return Err(InvalidAnswer::Lacks("the name of the model"));
    }
    Ok(selector.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_model_and_graph() {
        assert_eq!(graph_hash(&[9; 31]), Err(InvalidAnswer::GraphHash(31)));
        assert_eq!(graph_hash(&[9; 32]), Ok(Digest([9; 32])));
        assert!(model(None, true).is_err() && model(Some(ModelSelector::default()), true).is_err());
        let unnamed = model(None, false).unwrap();
        assert_eq!(unnamed.to_string(), "no model", "measurements answered");
    }
}
