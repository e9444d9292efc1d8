use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hlorank_graph::{Configurations, Digest, EncodedBatch, LayoutBatch, Limits, Task};
use hlorank_proto::v1::{
    self, Adaptation, ConfigBatch, ConfigSpace, Lease, LeaseRequest, ParameterConfig,
    ParameterConfigs, ReuseCounts, SearchState, SuggestConfigsRequest, SuggestConfigsResponse,
    SuggestionReason, SuggestionSource, Warning, config_batch::Configs,
};
use prost::bytes::Bytes;

use crate::{
    GraphHandle, InvalidAnswer, ModelReference, Timings,
    answer::{graph_hash, invalid, is_score, model, not_a_score},
};

/// A request for configurations of a graph to measure next.
#[derive(Debug)]
pub struct SuggestRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    /// Without its graph.
    pub(crate) message: SuggestConfigsRequest,
    /// The digest of the batch, once a server has answered with it. It is sent in place of the batch.
    batch_digest: Mutex<Bytes>,
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
    /// Their configurations in the same order, if the server drew them from a space.
    pub configs: Vec<ParameterConfig>,
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
    /// The lease of each suggestion, if leases were asked for.
    pub leases: Vec<Lease>,
    /// What the search is doing, if leases were asked for.
    pub state: SearchState,
    /// When to ask again, if others measure all that is left.
    pub retry_after: Duration,
    /// What later requests send instead of the candidates; empty if the server is too old for that.
    pub batch_digest: Bytes,
}

/// A configuration to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suggestion {
    /// Number of the configuration among the candidates, or in [`Suggestions::combinations`] or [`Suggestions::configs`].
    pub config: usize,
    /// Why it is suggested; unspecified for a reason that this client does not know.
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
            batch_digest: Mutex::default(),
            candidates: candidates.len(),
            slots,
            timeout: None,
        }
    }

    /// Requests one suggestion from a space that is too large to list, of a graph of one node.
    #[must_use]
    pub fn of_space(graph: &'a GraphHandle, space: ConfigSpace) -> Self {
        Self {
            graph,
            message: SuggestConfigsRequest {
                space: Some(space),
                ..SuggestConfigsRequest::default()
            },
            batch_digest: Mutex::default(),
            candidates: 0,
            slots: 0,
            timeout: None,
        }
    }

    /// Sets the configurations of the space that are being measured, at most 256. Default: none.
    #[must_use]
    pub fn pending_configs(mut self, configs: Vec<ParameterConfig>) -> Self {
        self.message.pending_configs = Some(ParameterConfigs { configs });
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
        self.message.set_source(source);
        self
    }

    /// Has the suggestions leased, so that no other worker of the search is given them meanwhile. The target is that of
    /// [`adapt`](Self::adapt). Default: nothing is leased.
    #[must_use]
    pub fn lease(mut self, lease: LeaseRequest) -> Self {
        self.message.lease = Some(lease);
        self
    }

    pub(crate) fn message(&self, graph: v1::Graph) -> SuggestConfigsRequest {
        let batch_digest = self.known_batch().clone();
        let batch = self.message.batch.as_ref();
        SuggestConfigsRequest {
            graph: Some(graph),
            batch: batch.filter(|_| batch_digest.is_empty()).cloned(),
            batch_digest,
            count: self.message.count,
            model: self.message.model.clone(),
            adapt: self.message.adapt.clone(),
            pending: self.message.pending.clone(),
            lease: self.message.lease.clone(),
            since_improvement: self.message.since_improvement,
            seed: self.message.seed,
            source: self.message.source,
            space: self.message.space.clone(),
            pending_configs: self.message.pending_configs.clone(),
        }
    }

    /// Sends the batch itself again.
    pub(crate) fn forget_batch(&self) {
        *self.known_batch() = Bytes::new();
    }

    fn known_batch(&self) -> MutexGuard<'_, Bytes> {
        self.batch_digest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks an answer and converts it.
    pub(crate) fn read(
        &self,
        answer: SuggestConfigsResponse,
    ) -> Result<Suggestions, InvalidAnswer> {
        let state = answer.state();
        let is_leased = self.message.lease.is_some();
        if is_leased && answer.leases.len() != answer.suggestions.len() {
            return invalid("it does not have a lease for each suggestion");
        }
        // A count that is not set stands for 1.
        let (found, asked) = (answer.suggestions.len(), self.message.count.max(1) as usize);
        if found > asked {
            return invalid(format!(
                "it has {found} suggestions, but {asked} were requested"
            ));
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
                    _ => return invalid("its combinations are no layouts of the graph"),
                }
            }
            None => None,
        };
        let configs = answer.configs.unwrap_or_default().configs;
        let (candidates, pending) = match &combinations {
            None if self.message.space.is_some() => (configs.len(), &[][..]),
            None => (self.candidates, &self.message.pending[..]),
            // Pending ones are numbers of the batch, and not of the combinations.
            Some(combinations) => (combinations.len(), &[][..]),
        };
        // Each suggestion is another candidate, and none that is being measured.
        let mut known: HashSet<u32> = pending.iter().copied().collect();
        for suggestion in &answer.suggestions {
            let config = suggestion.config as usize;
            if config >= candidates || !known.insert(suggestion.config) {
                return invalid(format!(
                    "it suggests configuration {config}, which was not sent, is pending, or is suggested already"
                ));
            }
            if !is_score(suggestion.score) {
                return Err(not_a_score(config));
            }
        }
        self.known_batch().clone_from(&answer.batch_digest);
        let suggestions = answer.suggestions.into_iter().map(|suggestion| Suggestion {
            config: suggestion.config as usize,
            reason: suggestion.reason(),
            score: suggestion.score,
            predicted_seconds: suggestion.predicted_seconds,
            log_sd: suggestion.log_sd,
            expected_improvement: suggestion.expected_improvement,
        });
        Ok(Suggestions {
            suggestions: suggestions.collect(),
            combinations,
            configs,
            adaptation: answer.adaptation,
            model: model(answer.model, self.graph.needs_model())?,
            graph_hash: graph_hash(&answer.graph_hash)?,
            timings: answer.timings.map(Timings::from).unwrap_or_default(),
            reuse: answer.reuse.unwrap_or_default(),
            warnings: answer.warnings,
            leases: answer.leases,
            batch_digest: answer.batch_digest,
            state,
            retry_after: answer
                .retry_after
                .and_then(|after| after.try_into().ok())
                .unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Task;
    use hlorank_proto::v1::ModelSelector;

    use super::*;
    use crate::tests::tiles;

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
        let request = SuggestRequest::new(&handle, &tiles(&[4, 8, 16]))
            .count(2)
            .pending(&[1]);
        let valid = request.read(answer(&[(2, 1.0), (0, 3.0)])).unwrap();
        let suggested = valid.suggestions.iter().map(|each| each.config);
        assert_eq!(suggested.collect::<Vec<_>>(), [2, 0]);
        assert_eq!(valid.suggestions[0].reason, SuggestionReason::Unspecified);
        for (suggestions, expected) in [
            (&[(3, 1.0)][..], "it suggests configuration 3"),
            // It is pending.
            (&[(1, 1.0)], "it suggests configuration 1"),
            (&[(0, 1.0), (0, 1.0)], "it suggests configuration 0"),
            (&[(0, f32::NAN)], "the score of configuration 0"),
            (
                &[(0, 1.0), (2, 1.0), (1, 1.0)],
                "it has 3 suggestions, but 2 were requested",
            ),
        ] {
            let refused = request.read(answer(suggestions)).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
        let combinations = Some(v1::PackedLayoutConfigs {
            config_count: 1,
            ..v1::PackedLayoutConfigs::default()
        });
        let combined = request.read(SuggestConfigsResponse {
            combinations,
            ..answer(&[])
        });
        assert_eq!(
            combined.unwrap_err().to_string(),
            "its combinations are no layouts of the graph",
            "the candidates are tiles"
        );
    }
}
