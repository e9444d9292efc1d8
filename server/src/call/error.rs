use std::time::Duration;

use hlorank_graph::{ConfigurationError, Digest, GraphError};

use super::MeasurementError;
use crate::{
    compute::WorkerFailed,
    engine::EngineError,
    leases::LeaseError,
    memory::MemoryFull,
    refusal::{Refused as _, refusals},
    registry::SelectError,
    store::StoreError,
    suggestions::SpaceError,
};

refusals! {
    /// The reason why a call fails once it was admitted.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum CallError {
        #[error("graph {hash} is not cached; send the graph itself, then its hash works again")]
        GraphNotCached { hash: Digest } => GRAPH_NOT_CACHED,
        #[error("{field} has {found} bytes, at most {limit} are accepted, half of --max-message-bytes; raise it on the server")]
        GraphBytes { field: &'static str, found: usize, limit: usize }
            => GRAPH_TOO_LARGE.at(field).limit("--max-message-bytes").found(found).allowed(limit),
        #[error("the batch of this digest is not cached; send the batch itself, then its digest works again")]
        UnknownBatch => UNKNOWN_BATCH.at("batch_digest"),
        #[error("graph: {0}{hint}", hint = .0.refusal().hint())]
        Graph(#[from] error: GraphError) => error.refusal().at("graph"),
        #[error("{field}: {source}{hint}", hint = .source.refusal().hint())]
        Configuration { field: &'static str, source: ConfigurationError } => source.refusal().at(field),
        #[error(transparent)]
        Measurement(#[from] error: MeasurementError) => error.refusal(),
        #[error(transparent)]
        Store(#[from] error: StoreError) => error.refusal(),
        #[error(transparent)]
        Lease(#[from] error: LeaseError) => error.refusal(),
        #[error(
            "batch {batch} brings the stream to {found} configurations, at most {limit} are accepted; send several streams, \
             or raise --max-message-bytes on the server"
        )]
        StreamTooLong { batch: usize, found: usize, limit: usize }
            => STREAM_TOO_LONG.at("configs").limit("--max-message-bytes").found(found).allowed(limit),
        #[error("the call took longer than the {allowed:?} that grpc-timeout allows; allow more, or send less")]
        DeadlineExceeded { allowed: Duration } => DEADLINE_EXCEEDED,
        #[error(
            "allow_partial: the scores of model `{model}` depend on all configurations of the batch, so there is no partial \
             ranking; leave allow_partial unset, or name another model"
        )]
        PartialUnsupported { model: String } => PARTIAL_UNSUPPORTED.at("allow_partial"),
        #[error("source: {why}; leave source unset, and send the configurations to choose from")]
        SourceUnsupported { why: String } => SOURCE_UNSUPPORTED.at("source"),
        #[error("explain_top: {why}; leave explain_top unset")]
        ExplainUnsupported { why: &'static str } => EXPLAIN_UNSUPPORTED.at("explain_top"),
        #[error(transparent)]
        Space(#[from] error: SpaceError) => error.refusal(),
        #[error(transparent)]
        Select(#[from] error: SelectError) => error.refusal(),
        #[error(transparent)]
        Engine(#[from] error: EngineError) => error.refusal(),
        #[error(transparent)]
        Worker(#[from] error: WorkerFailed) => WORKER_FAILED,
    }
}

impl From<MemoryFull> for CallError {
    fn from(full: MemoryFull) -> Self {
        Self::Engine(full.into())
    }
}

impl CallError {
    /// Renumbers the configuration that an error names, for a batch that follows `first` configurations.
    pub(crate) fn numbered_after(mut self, first: usize) -> Self {
        if let Self::Engine(EngineError::InvalidOutput { config, .. }) = &mut self {
            *config += first;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_score_is_named_by_its_number_in_the_call() {
        let error = EngineError::InvalidOutput {
            model: "tile".to_owned(),
            config: 3,
            score: f32::NAN,
        };
        let error = CallError::from(error).numbered_after(1000).to_string();
        assert!(error.contains("NaN for configuration 1003"), "{error}");
    }
}
