use std::{ops::Range, sync::Arc, time::Instant};

use hlorank_graph::{Configurations, Kernel, KernelLimits, SegmentedGraph, TooManyRows};

use super::{
    embeddings::{CacheLookup, Embeddings},
    plan::Plan,
    sums::SumTree,
};
use crate::{
    compute::{Class, WorkResult, Worker},
    device,
    engine::{BatchPart, EngineError, Terms, error::check_scores, resources::Resources},
    memory::HeldBytes,
    model::{ModelFailed, SegmentModel},
    outcome::{Evaluation, KernelTime, Stages},
    runtime::Interrupt,
};

/// Scores configurations.
pub(crate) async fn score(
    resources: &Resources,
    embeddings: &Arc<Embeddings>,
    model: &Arc<SegmentModel>,
    graph: &Arc<SegmentedGraph>,
    part: BatchPart,
    terms: Terms,
) -> Result<Evaluation, EngineError> {
    let prepared = prepare(resources, embeddings, model, graph, part, terms).await?;
    let planned = Instant::now();
    let waited = prepared.waited;
    let PreparedBatch {
        model,
        graph,
        plan,
        looked_up,
        held,
    } = prepared.value;
    let completed = embeddings
        .complete(&model, &graph, &plan, looked_up, terms)
        .await?;
    let encoded = Instant::now();
    let sums = Sums {
        model: Arc::clone(&model),
        plan: Arc::clone(&plan),
        embeddings: completed.embeddings,
    };
    let distinct = sums.score_all(resources, terms.class).await?;
    // The embeddings are freed, which were most of it.
    drop(held);
    let reuse = plan.reuse(completed.evaluated);
    let mut scores = match terms.class {
        // Too little to hand to a worker.
        Class::Interactive => plan.fan_out(&distinct),
        Class::Bulk => {
            let plan = Arc::clone(&plan);
            let fan_out = move |_| plan.fan_out(&distinct);
            resources.pool.run(Class::Bulk, fan_out).await?.value
        }
    };
    // Before any score becomes infinite on purpose.
    check_scores(&model.facts, &scores)?;
    let unscored = plan.mark_unscored(&mut scores);
    let stages = Stages {
        waited,
        planned,
        encoded,
        scored: Instant::now(),
    };
    Ok(Evaluation {
        scores,
        reuse,
        unscored,
        stages,
    })
}

/// Returns the kernels of each configuration, and their scores.
pub(crate) async fn kernels(
    resources: &Resources,
    embeddings: &Arc<Embeddings>,
    model: &Arc<SegmentModel>,
    graph: &Arc<SegmentedGraph>,
    part: BatchPart,
    terms: Terms,
) -> Result<Vec<Vec<KernelTime>>, EngineError> {
    let whole = Arc::clone(graph);
    // The kernels are formed twice, here and by the plan, which does not keep them: all of a
    // batch would take much memory, and only a few configurations are explained.
    let form = move |_| {
        let configurations = part.into_configurations();
        (kernels_of(&whole, &configurations), configurations)
    };
    let (kernels, configurations) = resources.pool.run(terms.class, form).await?.value;
    let part = BatchPart::from(configurations);
    let prepared = prepare(resources, embeddings, model, graph, part, terms).await?;
    let plan = Arc::clone(&prepared.value.plan);
    let seconds = score_rows(resources, embeddings, prepared.value, terms).await?;
    let timed = kernels
        .iter()
        .enumerate()
        .map(|(config, kernels)| plan.timed(config, kernels, &seconds));
    Ok(timed.collect())
}

/// Scores every row by itself, as if a configuration had no other.
async fn score_rows(
    resources: &Resources,
    embeddings: &Arc<Embeddings>,
    prepared: PreparedBatch,
    terms: Terms,
) -> Result<Vec<f32>, EngineError> {
    let PreparedBatch {
        model,
        graph,
        plan,
        looked_up,
        held: _held,
    } = prepared;
    let completed = embeddings
        .complete(&model, &graph, &plan, looked_up, terms)
        .await?;
    let multiple = device::ROW_MULTIPLE * model.settings.embedding_size;
    let mut embeddings = completed.embeddings;
    // Rows of zeros make the number of rows a multiple, so that no score depends on the number.
    embeddings.resize(embeddings.len().next_multiple_of(multiple), 0.0);
    let interrupt = Arc::new(model.interrupt()?);
    let score = move |worker, interrupt: &Interrupt| model.score(worker, &embeddings, interrupt);
    let scored = resources.pool.run_session(terms.class, interrupt, score);
    Ok(scored.await??)
}

/// Returns the kernels of each configuration of a program, by root; none for those that are too large.
fn kernels_of(graph: &SegmentedGraph, configurations: &Configurations) -> Vec<Vec<Kernel>> {
    let (Some(program), Configurations::Fusion(batch)) = (graph.whole.program(), configurations)
    else {
        return Vec::new();
    };
    let kernels = |config| {
        program
            .kernels(batch.row(config), &KernelLimits::default())
            .unwrap_or_default()
    };
    (0..batch.len()).map(kernels).collect()
}

/// The sums of the embeddings of every distinct configuration, chunk by chunk.
struct Sums {
    model: Arc<SegmentModel>,
    plan: Arc<Plan>,
    /// `[rows, D]`.
    embeddings: Vec<f32>,
}

impl Sums {
    /// Returns the score of each sum.
    async fn score_all(self, resources: &Resources, class: Class) -> Result<Vec<f32>, EngineError> {
        let count = self.plan.distinct_configs();
        let interrupt = self.model.interrupt()?;
        let receiver = resources.pool.receiver();
        if let Some(receiver) = receiver.filter(|receiver| self.model.has_head(*receiver)) {
            return Ok(self.score(receiver, 0..count, &interrupt)?);
        }
        // A chunk reads about as many embeddings as fit the processor's cache, however many rows a
        // configuration has.
        let rows_per_config = (self.plan.rows_of_configs() / count.max(1)).max(1);
        let at_once = (device::HEAD_EMBEDDINGS / rows_per_config)
            .clamp(device::ROW_MULTIPLE, device::HEAD_CONFIGS);
        let chunks: Vec<Range<usize>> = (0..count)
            .step_by(at_once)
            .map(|start| start..count.min(start + at_once))
            .collect();
        let score =
            move |worker, configs, interrupt: &Interrupt| self.score(worker, configs, interrupt);
        let chunks = resources.score_in_chunks(chunks, class, interrupt, score);
        Ok(chunks.await?.concat())
    }

    /// Sums and scores one chunk.
    fn score(
        &self,
        worker: Worker,
        configs: Range<usize>,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let count = configs.len();
        let size = self.model.settings.embedding_size;
        let padded = count.next_multiple_of(device::ROW_MULTIPLE);
        // Each chunk has a tree of its own. The first sum of a chunk is made anew, and has the same
        // bits as one that follows from the sum before it.
        let mut tree = SumTree::new(&self.embeddings, size);
        let common = tree.sum(&self.plan.common).to_vec();
        let mut sums = Vec::with_capacity(padded * size);
        for rows in self.plan.rows_of(configs) {
            let own = tree.sum(rows).iter();
            sums.extend(own.zip(&common).map(|(own, common)| own + common));
        }
        // Zeros fill the rows up to a multiple.
        sums.resize(padded * size, 0.0);
        let mut scores = self.model.score(worker, &sums, interrupt)?;
        scores.truncate(count);
        Ok(scores)
    }
}

/// What has to be evaluated, and what the cache has of it.
struct PreparedBatch {
    pub(super) model: Arc<SegmentModel>,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) plan: Arc<Plan>,
    pub(super) looked_up: CacheLookup,
    /// Memory for the embeddings of the call, and for its kernels.
    held: HeldBytes,
}

/// Rows that take as long to plan as one padded node takes to evaluate. A row takes less than half a microsecond, and a node
/// some tens of them in a large segment.
const PLANNED_PER_NODE: usize = 64;

/// Maximum number of bytes for the embeddings of one call.
const MAX_EMBEDDING_BYTES: usize = 1 << 30;

/// Prepares configurations. They are refused at once for what [`check`] refuses.
async fn prepare(
    resources: &Resources,
    embeddings: &Arc<Embeddings>,
    model: &Arc<SegmentModel>,
    graph: &Arc<SegmentedGraph>,
    part: BatchPart,
    terms: Terms,
) -> Result<WorkResult<PreparedBatch>, EngineError> {
    check(resources, model, graph, terms)?;
    let (embeddings, model, graph) = (embeddings.clone(), model.clone(), graph.clone());
    let (backlog, memory) = (resources.backlog.clone(), resources.memory.clone());
    let prepare = move || {
        let configurations = part.into_configurations();
        // The distinct rows are not known yet, so every row of every configuration counts.
        let rows = configurations.len().saturating_mul(graph.rows_per_config());
        let digest = model.facts.digest;
        let planning = backlog.add(digest, graph.hash, rows / PLANNED_PER_NODE, terms)?;
        let plan = Plan::new(&graph, configurations)?;
        // What is missing is queued on its own, once the lookup has shown how much that is.
        drop(planning);
        let embedding_bytes = model.settings.embedding_size * size_of::<f32>();
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
    let WorkResult { value, waited } = resources.pool.run_short(terms.class, prepare).await?;
    Ok(WorkResult {
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
    if !graph.can_pad(model.facts.pad) {
        return Err(EngineError::pad_unknown(&model.facts));
    }
    match terms.class {
        Class::Bulk => resources.backlog.check_room(terms),
        Class::Interactive => Ok(()),
    }
}
