use std::{collections::HashSet, time::Duration};

use hlorank_graph::{Configurations, Digest, EncodedBatch, LayoutBatch, Limits, Task};
use hlorank_proto::v1::{
    self, Adaptation, ConfigBatch, ReuseCounts, SuggestConfigsRequest, SuggestConfigsResponse,
    Warning, config_batch::Configs,
};

use crate::{
    Adapt, GraphHandle, InvalidAnswer, ModelReference, Timings,
    answer::{graph_hash, is_score, model},
    model::selector,
};

/// A request for configurations of a graph to measure next.
#[derive(Debug)]
pub struct SuggestRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    /// Without its graph.
    message: SuggestConfigsRequest,
    candidates: usize,
    /// Number of configurable nodes of the graph; 0 for tiles.
    slots: u32,
    pub(crate) timeout: Option<Duration>,
}

/// What to measure next.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestions {
    /// In the order in which to measure them. Fewer than requested if no more candidates are left.
    pub suggestions: Vec<Suggestion>,
    /// Their configurations in the same order, if the server combined them.
    pub combinations: Option<LayoutBatch>,
    /// What the predictions rest on, if measurements were sent.
    pub adaptation: Option<Adaptation>,
    /// The model version that answered. It has no name, and is printed as `no model`, if measurements alone answered.
    pub model: ModelReference,
    /// The graph hash.
    pub graph_hash: Digest,
    /// Time of each stage on the server.
    pub timings: Timings,
    /// How much work was shared.
    pub reuse: ReuseCounts,
    /// Unusual properties of the request that the server accepted.
    pub warnings: Vec<Warning>,
}

/// A configuration to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suggestion {
    /// Number of the configuration among the candidates, or in [`Suggestions::combinations`].
    pub config: usize,
    /// Why it is suggested.
    pub reason: SuggestionReason,
    /// Predicted natural logarithm of seconds; the model's score if nothing was learned.
    pub score: f32,
    /// Predicted run time in seconds; 0 if nothing was learned.
    pub predicted_seconds: f32,
    /// Standard deviation of the natural logarithm of the predicted time; 0 if nothing was learned.
    pub log_sd: f32,
    /// By how much the natural logarithm of the fastest time is expected to fall; 0 if nothing was learned.
    pub expected_improvement: f32,
}

/// Where suggestions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuggestionSource {
    /// The candidates.
    #[default]
    Candidates,
    /// All combinations of the layouts that segments of the graph have in the candidates. Needs a segment model.
    Segments,
    /// All combinations of the layouts that nodes have in the candidates. Needs a segment model.
    Nodes,
}

/// Why a configuration is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuggestionReason {
    /// The model ranks it first, and too little was measured to learn from.
    Model,
    /// It improves the fastest time most, as expected over what is not known of it.
    ExpectedImprovement,
    /// Drawn at random, since the last measurements did not improve the fastest time, or without a model too little was
    /// measured to learn from.
    Random,
    /// A reason that this client does not know.
    Other,
}

impl<'a> SuggestRequest<'a> {
    /// Requests one suggestion from these candidates, by the default model of the task.
    #[must_use]
    pub fn new(graph: &'a GraphHandle, candidates: &Configurations) -> Self {
        let batch = ConfigBatch {
            configs: Some(candidates.to_smallest_form()),
        };
        let message = SuggestConfigsRequest {
            batch: Some(batch),
            ..SuggestConfigsRequest::default()
        };
        // The server combines only layouts, and the combinations have the slots of the candidates.
        let slots = match candidates {
            Configurations::Layout(batch) => u32::try_from(batch.slots()).unwrap_or(u32::MAX),
            _ => 0,
        };
        Self {
            graph,
            message,
            candidates: candidates.len(),
            slots,
            timeout: None,
        }
    }

    /// Sets the model. Default: the default model of the task.
    #[must_use]
    pub fn model(mut self, model: Option<&ModelReference>) -> Self {
        // The message has one selector for model and target, and either may be set first.
        let target = self.message.model.take().unwrap_or_default().target;
        self.message.model = selector(model, &target);
        self
    }

    /// Sets what the configurations are chosen for, as `HARDWARE, COMPILER VERSION, FLAG, ...`, by which the server selects a model
    /// if none is named. Default: the target of the measurements, if there are some.
    #[must_use]
    pub fn target(mut self, target: &str) -> Self {
        let selector = self.message.model.get_or_insert_default();
        target.clone_into(&mut selector.target);
        self
    }

    /// Sets what was measured until now. Default: nothing.
    #[must_use]
    pub fn adapt(mut self, adapt: Option<&Adapt>) -> Self {
        self.message.adapt = adapt.map(Adapt::message);
        self
    }

    /// Sets the number of suggestions, at most 64. Default: 1.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.message.count = count;
        self
    }

    /// Sets the numbers of candidates that are being measured. Default: none.
    #[must_use]
    pub fn pending(mut self, pending: &[u32]) -> Self {
        self.message.pending = pending.to_vec();
        self
    }

    /// Sets the number of measurements since the fastest one. After every fifth, the suggestion is a random one, drawn
    /// with this seed. Default: 0 and 0.
    #[must_use]
    pub fn since_improvement(mut self, measurements: u32, seed: u64) -> Self {
        self.message.since_improvement = measurements;
        self.message.seed = seed;
        self
    }

    /// Sets where suggestions come from. Default: the candidates.
    #[must_use]
    pub fn source(mut self, source: SuggestionSource) -> Self {
        let source = match source {
            SuggestionSource::Candidates => v1::SuggestionSource::Batch,
            SuggestionSource::Segments => v1::SuggestionSource::Segments,
            SuggestionSource::Nodes => v1::SuggestionSource::Nodes,
        };
        self.message.set_source(source);
        self
    }

    /// Sets the maximum time of the call, retries included. Default: [`Connection::timeout`](crate::Connection::timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn message(&self, graph: v1::Graph) -> SuggestConfigsRequest {
        SuggestConfigsRequest {
            graph: Some(graph),
            ..self.message.clone()
        }
    }

    /// Checks an answer and converts it.
    pub(crate) fn read(
        &self,
        answer: SuggestConfigsResponse,
    ) -> Result<Suggestions, InvalidAnswer> {
        // A count that is not set stands for 1.
        let (found, asked) = (answer.suggestions.len(), self.message.count.max(1) as usize);
        if found > asked {
            return Err(InvalidAnswer::Suggestions { found, asked });
        }
        let combinations = match answer.combinations {
            Some(packed) => {
                let configs = Configs::PackedLayoutConfigs(packed);
                // This form has no node numbers.
                let nodes: Vec<u32> = (0..self.slots).collect();
                let read = EncodedBatch::try_from(&configs)
                    .and_then(|batch| batch.read(Task::Layout, &nodes, &Limits::default()));
                match read {
                    Ok(Configurations::Layout(batch)) => Some(batch),
                    _ => return Err(InvalidAnswer::Combinations),
                }
            }
            None => None,
        };
        let (candidates, pending) = match &combinations {
            None => (self.candidates, &self.message.pending[..]),
            // Pending ones are numbers of the batch, and not of the combinations.
            Some(combinations) => (combinations.len(), &[][..]),
        };
        // Each suggestion is another candidate, and none that is being measured.
        let mut known: HashSet<u32> = pending.iter().copied().collect();
        for suggestion in &answer.suggestions {
            let config = suggestion.config as usize;
            if config >= candidates || !known.insert(suggestion.config) {
                return Err(InvalidAnswer::Suggested(config));
            }
            if !is_score(suggestion.score) {
                return Err(InvalidAnswer::NotAScore(config));
            }
        }
        let suggestions = answer.suggestions.into_iter().map(Suggestion::from);
        Ok(Suggestions {
            suggestions: suggestions.collect(),
            combinations,
            adaptation: answer.adaptation,
            model: model(answer.model, self.graph.needs_model())?,
            graph_hash: graph_hash(&answer.graph_hash)?,
            timings: answer.timings.map(Timings::from).unwrap_or_default(),
            reuse: answer.reuse.unwrap_or_default(),
            warnings: answer.warnings,
        })
    }
}

impl From<v1::Suggestion> for Suggestion {
    fn from(suggestion: v1::Suggestion) -> Self {
        Self {
            config: suggestion.config as usize,
            reason: match suggestion.reason() {
                v1::SuggestionReason::Model => SuggestionReason::Model,
                v1::SuggestionReason::ExpectedImprovement => SuggestionReason::ExpectedImprovement,
                v1::SuggestionReason::Random => SuggestionReason::Random,
                // The message also gives a reason that is newer than this client as unspecified.
                v1::SuggestionReason::Unspecified => SuggestionReason::Other,
            },
            score: suggestion.score,
            predicted_seconds: suggestion.predicted_seconds,
            log_sd: suggestion.log_sd,
            expected_improvement: suggestion.expected_improvement,
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Limits, Task, TileBatch, TileConfiguration};
    use hlorank_proto::v1::ModelSelector;

    use super::*;

    fn answer(suggestions: &[(u32, f32)]) -> SuggestConfigsResponse {
        let suggestion = |&(config, score): &(u32, f32)| v1::Suggestion {
            config,
            score,
            ..v1::Suggestion::default()
        };
        SuggestConfigsResponse {
            suggestions: suggestions.iter().map(suggestion).collect(),
            model: Some(ModelSelector {
                name: "tile".to_owned(),
                version: 4,
                ..ModelSelector::default()
            }),
            graph_hash: vec![9; 32].into(),
            ..SuggestConfigsResponse::default()
        }
    }

    #[test]
    fn impossible_suggestions_are_refused() {
        let handle = GraphHandle::hlo_module(vec![1, 2, 3], Task::Tile, vec![]);
        let mut tiles = TileBatch::default();
        for bound in [4, 8, 16] {
            let tile = TileConfiguration {
                kernel_bounds: &[],
                output_bounds: &[bound],
                input_bounds: &[],
            };
            tiles.push(tile, &Limits::default()).unwrap();
        }
        let request = SuggestRequest::new(&handle, &Configurations::Tile(tiles))
            .count(2)
            .pending(&[1]);
        let read = |suggestions: &[(u32, f32)]| request.read(answer(suggestions));
        let valid = read(&[(2, 1.0), (0, 3.0)]).unwrap();
        assert_eq!(
            valid
                .suggestions
                .iter()
                .map(|each| each.config)
                .collect::<Vec<_>>(),
            [2, 0]
        );
        assert_eq!(valid.suggestions[0].reason, SuggestionReason::Other);
        assert_eq!(read(&[(3, 1.0)]), Err(InvalidAnswer::Suggested(3)));
        assert_eq!(
            read(&[(1, 1.0)]),
            Err(InvalidAnswer::Suggested(1)),
            "it is pending"
        );
        assert_eq!(
            read(&[(0, 1.0), (0, 1.0)]),
            Err(InvalidAnswer::Suggested(0))
        );
        assert_eq!(read(&[(0, f32::NAN)]), Err(InvalidAnswer::NotAScore(0)));
        let combinations = Some(v1::PackedLayoutConfigs {
            config_count: 1,
            ..v1::PackedLayoutConfigs::default()
        });
        let combined = request.read(SuggestConfigsResponse {
            combinations,
            ..answer(&[])
        });
        assert_eq!(
            combined,
            Err(InvalidAnswer::Combinations),
            "the candidates are tiles"
        );
        let found = read(&[(0, 1.0), (2, 1.0), (1, 1.0)]);
        assert_eq!(
            found,
            Err(InvalidAnswer::Suggestions { found: 3, asked: 2 })
        );
    }
}
