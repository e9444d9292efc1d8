use std::time::Duration;

use hlorank_graph::TooManyRows;

use crate::{
    compute::WorkerFailed,
    memory::MemoryFull,
    model::{ModelFacts, ModelFailed},
    refusal::refusals,
};

refusals! {
    /// The reason why there are no scores.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum EngineError {
        #[error(
            "model `{model}` needs features padded with -1, but the graph came as features padded with 0; send the HLO \
             module, or features with pad_value -1"
        )]
        PadUnknown { model: String } => PAD_UNKNOWN.at("graph.features"),
        #[error(
            "model `{model}` takes the configurable nodes of a graph and their neighbours, but the graph has none; name \
             configurable nodes, or another model"
        )]
        NothingKept { model: String } => NOTHING_TO_CONFIGURE.at("graph"),
        #[error(transparent)]
        TooManyRows(#[from] error: TooManyRows) => TOO_MANY_ROWS.at("configs"),
        #[error(
            "model `{model}` takes about {bytes} bytes for a run over this graph of {nodes} nodes and {edges} edges, the \
             maximum is {limit} bytes, seven eighths of --max-call-bytes; send a smaller graph, name another model, or raise \
             --max-call-bytes on the server"
        )]
        GraphTooLarge { model: String, nodes: usize, edges: usize, bytes: usize, limit: usize }
            => GRAPH_TOO_LARGE.at("graph").limit("--max-call-bytes").found(bytes).allowed(limit),
        #[error(
            "model `{model}` gave {score} for configuration {config}: the graph or the configuration may lie far outside \
             what it was trained on; leave the configuration out, or name another model"
        )]
        InvalidOutput { model: String, config: usize, score: f32 } => MODEL_OUTPUT_INVALID,
        #[error(
            "scoring these configurations takes about {estimate:.1?}, beside the calls in progress, and grpc-timeout leaves \
             {left:.1?}; allow more, send fewer at a time, or set allow_partial"
        )]
        DeadlineTooShort { estimate: Duration, left: Duration } => DEADLINE_TOO_SHORT,
        #[error(
            "calls wait for {queued} evaluated nodes already, of at most {limit}, and scoring these configurations takes {}; \
             send fewer at a time, try again later, or raise --max-queued-nodes on the server",
            nodes.map_or("more".to_owned(), |nodes| nodes.to_string())
        )]
        QueueFull { nodes: Option<usize>, queued: usize, limit: usize, room_in: Duration }
            => QUEUE_FULL.limit("--max-queued-nodes").allowed(limit).room_in(*room_in),
        #[error(transparent)]
        MemoryFull(#[from] error: MemoryFull) => MEMORY_FULL.limit("--max-call-bytes").allowed(error.limit),
        #[error(transparent)]
        Model(#[from] error: ModelFailed) => MODEL_FAILED,
        #[error(transparent)]
        Worker(#[from] error: WorkerFailed) => WORKER_FAILED,
    }
}

impl EngineError {
    /// The graph cannot be padded as the model needs it.
    pub(super) fn pad_unknown(model: &ModelFacts) -> Self {
        Self::PadUnknown {
            model: model.name.clone(),
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
