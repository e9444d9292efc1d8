//! Everything that is found out about a batch before anything is evaluated. A large batch takes many milliseconds, so it
//! takes turns with other calls.

use std::sync::Arc;

use hlorank_graph::{SegmentedGraph, TooManyRows};

use super::{
    embeddings::{CacheLookup, Embeddings},
    plan::Plan,
};
use crate::{
    compute::{Class, Computed},
    engine::{BatchPart, EngineError, Terms, resources::Resources},
    memory::Held,
    model::SegmentModel,
};

/// What has to be evaluated, and what the cache has of it.
pub(super) struct PreparedBatch {
    pub(super) model: Arc<SegmentModel>,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) plan: Arc<Plan>,
    pub(super) looked_up: CacheLookup,
    /// Memory for the embeddings of the call, and for its kernels.
    pub(super) held: Held,
}

/// Rows that take as long to plan as one padded node takes to evaluate. A row takes less than half a microsecond, and a node
/// some tens of them in a large segment.
const PLANNED_PER_NODE: usize = 64;

/// Maximum number of bytes for the embeddings of one call.
const MAX_EMBEDDING_BYTES: usize = 1 << 30;

/// Prepares configurations. They are refused at once for what [`check`] refuses.
pub(super) async fn prepare(
    resources: &Resources,
    embeddings: &Arc<Embeddings>,
    model: &Arc<SegmentModel>,
    graph: &Arc<SegmentedGraph>,
    part: BatchPart,
    terms: Terms,
) -> Result<Computed<PreparedBatch>, EngineError> {
    check(resources, model, graph, terms)?;
    let (embeddings, model, graph) = (embeddings.clone(), model.clone(), graph.clone());
    let (backlog, memory) = (resources.backlog.clone(), resources.memory.clone());
    let prepare = move |_| {
        let configurations = part.into_configurations();
        // The distinct rows are not known yet, so every row of every configuration counts.
        let rows = configurations.len().saturating_mul(graph.rows_per_config());
        let digest = model.facts().digest;
        let planning = backlog.add(digest, graph.hash, rows / PLANNED_PER_NODE, terms)?;
        let plan = Plan::new(&graph, configurations)?;
        // What is missing is queued on its own, once the lookup has shown how much that is.
        drop(planning);
        let embedding_bytes = model.settings().embedding_size * size_of::<f32>();
        if plan.rows.len() > MAX_EMBEDDING_BYTES / embedding_bytes {
            return Err(TooManyRows.into());
        }
        // Held before the lookup takes it.
        let held = memory.hold(plan.rows.len() * embedding_bytes + plan.bytes())?;
        Ok::<_, EngineError>(PreparedBatch {
            looked_up: embeddings.look_up(&model, &graph, &plan),
            plan: Arc::new(plan),
            model,
            graph,
            held,
        })
    };
    let Computed { value, waited } = resources.pool.run(terms.class, prepare).await?;
    Ok(Computed {
        value: value?,
        waited,
    })
}

/// Refuses a batch whatever its configurations are: the graph cannot be padded as the model needs it, or a large batch
/// comes while the queue is full. How much work a small one is shows soon.
pub(crate) fn check(
    resources: &Resources,
    model: &SegmentModel,
    graph: &SegmentedGraph,
    terms: Terms,
) -> Result<(), EngineError> {
    if !graph.can_pad(model.facts().pad) {
        return Err(EngineError::pad_unknown(model.facts()));
    }
    match terms.class {
        Class::Bulk => resources.backlog.check_room(terms),
        Class::Interactive => Ok(()),
    }
}
