use std::time::Duration;

use hlorank_graph::TooManyRows;

use crate::{
    compute::WorkerFailed,
    memory::MemoryFull,
    model::{ModelFacts, ModelFailed, RunSizes},
};

/// The reason why there are no scores.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The model needs features padded with −1, but the graph came padded with 0.
    #[error(
        "model `{model}` needs features padded with -1, but the graph came as features padded with 0; send the HLO \
         module, or features with pad_value -1"
    )]
    PadUnknown {
        /// The model.
        model: String,
    },
    /// The model takes what pruning keeps of a graph, which is nothing.
    #[error(
        "model `{model}` takes the configurable nodes of a graph and their neighbours, but the graph has none; name \
         configurable nodes, or another model"
    )]
    NothingKept {
        /// The model.
        model: String,
    },
    /// The batch needs too much memory.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// A run of the model over the graph takes too much memory.
    #[error(
        "model `{model}` takes about {bytes} bytes for a run over this graph of {nodes} nodes and {edges} edges, the maximum is \
         {limit} bytes, seven eighths of --max-call-bytes; send a smaller graph, name another model, or raise \
         --max-call-bytes on the server"
    )]
    GraphTooLarge {
        /// The model.
        model: String,
        /// Number of nodes that the model takes.
        nodes: usize,
        /// Number of edges between them.
        edges: usize,
        /// Estimated memory of the smallest run.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The model returned NaN or infinity.
    #[error(
        "model `{model}` gave {score} for configuration {config}: the graph or the configuration may lie far outside \
         what it was trained on; leave the configuration out, or name another model"
    )]
    InvalidOutput {
        /// The model.
        model: String,
        /// The first such configuration.
        config: usize,
        /// Its score.
        score: f32,
    },
    /// The deadline will pass before the batch is scored.
    #[error(
        "scoring these configurations takes about {estimate:.1?}, beside the calls in progress, and grpc-timeout leaves \
         {left:.1?}; allow more, send fewer at a time, or set allow_partial"
    )]
    DeadlineTooShort {
        /// Estimated time for the batch.
        estimate: Duration,
        /// Time left until the deadline.
        left: Duration,
    },
    /// The queue is full.
    #[error(
        "calls wait for {queued} evaluated nodes already, of at most {limit}, and scoring these configurations takes \
         {}; send fewer at a time, try again later, or raise --max-queued-nodes on the server",
        nodes.map_or("more".to_owned(), |nodes| nodes.to_string())
    )]
    QueueFull {
        /// Work of this call in nodes; `None` if it was not counted.
        nodes: Option<usize>,
        /// Queued work of all calls, in nodes.
        queued: usize,
        /// Maximum amount of queued work, in nodes.
        limit: usize,
        /// Estimated time until there is room; zero if it is not known.
        room_in: Duration,
    },
    /// Calls hold too much memory.
    #[error(transparent)]
    MemoryFull(#[from] MemoryFull),
    /// ONNX Runtime failed.
    #[error(transparent)]
    Model(#[from] ModelFailed),
    /// A worker panicked.
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

impl EngineError {
    /// The graph cannot be padded as the model needs it.
    pub(super) fn pad_unknown(model: &ModelFacts) -> Self {
        Self::PadUnknown {
            model: model.name.clone(),
        }
    }

    /// Pruning keeps nothing of the graph.
    pub(super) fn nothing_kept(model: &ModelFacts) -> Self {
        Self::NothingKept {
            model: model.name.clone(),
        }
    }

    /// The smallest run over a graph of these sizes takes `bytes` bytes.
    pub(super) fn graph_too_large(
        model: &ModelFacts,
        sizes: RunSizes,
        bytes: usize,
        limit: usize,
    ) -> Self {
        Self::GraphTooLarge {
            model: model.name.clone(),
            nodes: sizes.nodes,
            edges: sizes.edges,
            bytes,
            limit,
        }
    }
}

/// Checks that every score is a number.
pub(super) fn check_scores(model: &ModelFacts, scores: &[f32]) -> Result<(), EngineError> {
    match scores.iter().position(|score| !score.is_finite()) {
        None => Ok(()),
        Some(config) => Err(EngineError::InvalidOutput {
            model: model.name.clone(),
            config,
            score: scores[config],
        }),
    }
}
