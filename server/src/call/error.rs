use std::time::Duration;

use hlorank_graph::{ConfigurationError, Digest, GraphError};

use super::{
    MeasurementError,
    limit::{Limit, configuration_limit, engine_limit, graph_limit, hint, store_limit},
};
use crate::{
    compute::WorkerFailed, engine::EngineError, memory::MemoryFull, registry::SelectError,
    store::StoreError,
};

/// The reason why a call fails once it was admitted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server has no graph with this hash.
    #[error("graph {hash} is not cached; send the graph itself, then its hash works again")]
    GraphNotCached {
        /// The hash.
        hash: Digest,
    },
    /// A module or text is too long.
    #[error(
        "{field} has {found} bytes, at most {limit} are accepted, half of --max-message-bytes; raise it on the server"
    )]
    GraphBytes {
        /// The field that holds it.
        field: &'static str,
        /// Bytes sent.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The graph was refused.
    #[error("graph: {0}{hint}", hint = hint(graph_limit(.0)))]
    Graph(GraphError),
    /// The configurations were refused.
    #[error("{field}: {source}{hint}", hint = hint(configuration_limit(.source)))]
    Configuration {
        /// The field that holds them.
        field: &'static str,
        /// The reason.
        source: ConfigurationError,
    },
    /// The measurements were refused.
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    /// The store of measurements did not do what the call asked for.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stream has more configurations than the limit.
    #[error(
        "batch {batch} brings the stream to {found} configurations, at most {limit} are accepted; send several \
         streams, or raise --max-message-bytes on the server"
    )]
    StreamTooLong {
        /// Number of the batch, from 0.
        batch: usize,
        /// Configurations of all batches until now.
        found: usize,
        /// Configurations allowed.
        limit: usize,
    },
    /// The call took longer than its client allowed.
    #[error(
        "the call took longer than the {allowed:?} that grpc-timeout allows; allow more, or send less"
    )]
    DeadlineExceeded {
        /// The time that the client allowed.
        allowed: Duration,
    },
    /// Scores of the model depend on the whole batch.
    #[error(
        "allow_partial: the scores of model `{model}` depend on all configurations of the batch, so there is no partial \
         ranking; leave allow_partial unset, or name another model"
    )]
    PartialUnsupported {
        /// The model.
        model: String,
    },
    /// Suggestions cannot combine what the configurations of the batch have.
    #[error("source: {why}; leave source unset, and send the configurations to choose from")]
    SourceUnsupported {
        /// The reason.
        why: String,
    },
    /// Kernels were asked for of a task that has none, or of scores that are adapted.
    #[error("explain_top: {why}; leave explain_top unset")]
    ExplainUnsupported {
        /// The reason.
        why: &'static str,
    },
    /// No such model, or not for these configurations.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The model does not take this graph, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A worker panicked.
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

impl From<MemoryFull> for CallError {
    fn from(full: MemoryFull) -> Self {
        Self::Engine(full.into())
    }
}

impl CallError {
    /// The exceeded limit, if it has a number.
    pub(crate) fn limit(&self) -> Option<Limit> {
        let of = |setting, found, allowed| Some(Limit::of(setting, found, allowed));
        match self {
            Self::GraphBytes { found, limit, .. } | Self::StreamTooLong { found, limit, .. } => {
                of("--max-message-bytes", Some(*found), *limit)
            }
            Self::Graph(error) => graph_limit(error),
            Self::Configuration { source, .. } => configuration_limit(source),
            Self::Measurement(MeasurementError::TooMany { found, limit, .. }) => {
                Some(Limit::fixed(Some(*found), *limit))
            }
            Self::Store(error) => store_limit(error),
            Self::Engine(error) => engine_limit(error),
            _ => None,
        }
    }

    /// Estimated time until the server has room for what it refused; zero if it is not known.
    pub(crate) fn room_in(&self) -> Duration {
        match self {
            Self::Engine(EngineError::QueueFull { room_in, .. }) => *room_in,
            _ => Duration::ZERO,
        }
    }

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
