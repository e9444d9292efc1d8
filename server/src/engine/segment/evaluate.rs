use std::{ops::Range, sync::Arc, time::Instant};

use hlorank_graph::{Configurations, Digest, Kernel, KernelLimits, SegmentedGraph};
use metrics::Gauge;

use super::{
    embeddings::{EmbeddingCache, Embeddings},
    plan::Plan,
    prepare::{Preparation, PreparedBatch, check_pad, check_room},
    sums::SumTree,
};
use crate::{
    compute::{Class, Computed, Worker},
    device::DeviceProfile,
    engine::{BatchPart, EngineError, Terms, error::check_scores, resources::Resources},
    model::{ModelFailed, SegmentModel},
    outcome::{Evaluation, KernelTime, Stages},
    runtime::Interrupt,
};

/// Evaluates segment models.
pub(in crate::engine) struct SegmentEvaluator {
    embeddings: Arc<Embeddings>,
}

impl SegmentEvaluator {
    pub(in crate::engine) fn new(
        resources: &Resources,
        cache: Arc<EmbeddingCache>,
        waiting_rows: Gauge,
    ) -> Self {
        let pool = Arc::clone(&resources.pool);
        let backlog = Arc::clone(&resources.backlog);
        let embeddings = Arc::new(Embeddings::new(pool, cache, backlog, waiting_rows));
        Self { embeddings }
    }

    /// Sets the gauges to the current state.
    pub(in crate::engine) fn sample(&self) {
        self.embeddings.sample();
    }

    /// Drops the embeddings of a model.
    pub(in crate::engine) fn forget(&self, model: Digest) {
        self.embeddings.cache().forget(model);
    }

    /// Scores configurations.
    pub(in crate::engine) async fn score(
        &self,
        resources: &Resources,
        model: &Arc<SegmentModel>,
        graph: &Arc<SegmentedGraph>,
        part: BatchPart,
        terms: Terms,
    ) -> Result<Evaluation, EngineError> {
        let preparation = Preparation::new(model, graph, &self.embeddings, &resources.memory)?;
        let prepared = preparation.run(resources, part, terms).await?;
        self.evaluate(resources, prepared, terms).await
    }

    /// Returns the kernels of each configuration, and their scores.
    pub(in crate::engine) async fn kernels(
        &self,
        resources: &Resources,
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
        let preparation = Preparation::new(model, graph, &self.embeddings, &resources.memory)?;
        let prepared = preparation.run(resources, part, terms).await?.value;
        let plan = Arc::clone(&prepared.plan);
        let seconds = self.score_rows(resources, prepared, terms).await?;
        let timed = kernels
            .iter()
            .enumerate()
            .map(|(config, kernels)| plan.timed(config, kernels, &seconds));
        Ok(timed.collect())
    }

    /// Scores every row by itself, as if a configuration had no other.
    async fn score_rows(
        &self,
        resources: &Resources,
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
        let completed = self
            .embeddings
            .complete(&model, &graph, &plan, looked_up, terms)
            .await?;
        let size = model.settings().embedding_size;
        let multiple = resources.device().row_multiple * size;
        let mut embeddings = completed.embeddings;
        // Rows of zeros make the number of rows a multiple, so that no score depends on the number.
        embeddings.resize(embeddings.len().next_multiple_of(multiple), 0.0);
        let interrupt = Arc::new(model.interrupt()?);
        let score =
            move |worker, interrupt: &Interrupt| model.score(worker, &embeddings, interrupt);
        let scored = resources.pool.run_session(terms.class, interrupt, score);
        Ok(scored.await??)
    }

    async fn evaluate(
        &self,
        resources: &Resources,
        prepared: Computed<PreparedBatch>,
        terms: Terms,
    ) -> Result<Evaluation, EngineError> {
        let planned = Instant::now();
        let waited = prepared.waited;
        let PreparedBatch {
            model,
            graph,
            plan,
            looked_up,
            held,
        } = prepared.value;
        let completed = self
            .embeddings
            .complete(&model, &graph, &plan, looked_up, terms)
            .await?;
        let encoded = Instant::now();
        let sums = Sums {
            model: Arc::clone(&model),
            plan: Arc::clone(&plan),
            embeddings: completed.embeddings,
            device: resources.device(),
        };
        let distinct = sums.score_all(resources, terms.class).await?;
        // The embeddings are freed, which were most of it.
        drop(held);
        let reuse = plan.reuse(completed.evaluated);
        let mut scores = fan_out(resources, Arc::clone(&plan), distinct, terms.class).await?;
        // Before any score becomes infinite on purpose.
        check_scores(model.facts(), &scores)?;
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
}

/// Refuses a batch whatever its configurations are: the graph cannot be padded as the model needs it, or a large batch
/// comes while the queue is full.
pub(in crate::engine) fn check(
    resources: &Resources,
    model: &SegmentModel,
    graph: &SegmentedGraph,
    terms: Terms,
) -> Result<(), EngineError> {
    check_pad(model, graph)?;
    check_room(resources, terms)
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
    device: &'static DeviceProfile,
}

impl Sums {
    /// Returns the score of each sum.
    async fn score_all(self, resources: &Resources, class: Class) -> Result<Vec<f32>, EngineError> {
        let chunks = self.chunks();
        let interrupt = self.model.interrupt()?;
        let score =
            move |worker, configs, interrupt: &Interrupt| self.score(worker, configs, interrupt);
        let chunks = resources.score_in_chunks(chunks, class, interrupt, score);
        Ok(chunks.await?.concat())
    }

    fn chunks(&self) -> Vec<Range<usize>> {
        let count = self.plan.distinct_configs();
        // A chunk reads about as many embeddings as fit the processor's cache, however many rows a
        // configuration has.
        let rows_per_config = (self.plan.rows_of_configs() / count.max(1)).max(1);
        let at_once = (self.device.head_embeddings / rows_per_config)
            .clamp(self.device.row_multiple, self.device.head_configs);
        (0..count)
            .step_by(at_once)
            .map(|start| start..count.min(start + at_once))
            .collect()
    }

    /// Sums and scores one chunk.
    fn score(
        &self,
        worker: Worker,
        configs: Range<usize>,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let count = configs.len();
        let sums = self.padded_sums(configs);
        let mut scores = self.model.score(worker, &sums, interrupt)?;
        scores.truncate(count);
        Ok(scores)
    }

    /// Returns the `[configs, D]` sums of configurations. Zeros follow up to a multiple of rows.
    fn padded_sums(&self, configs: Range<usize>) -> Vec<f32> {
        let size = self.model.settings().embedding_size;
        let padded = configs.len().next_multiple_of(self.device.row_multiple);
        // Each chunk has a tree of its own. The first sum of a chunk is made anew, and has the same
        // bits as one that follows from the sum before it.
        let mut tree = SumTree::new(&self.embeddings, size);
        let mut sums = Vec::with_capacity(padded * size);
        self.plan
            .rows_of(configs)
            .for_each(|rows| sums.extend_from_slice(tree.sum(rows)));
        sums.resize(padded * size, 0.0);
        sums
    }
}

/// Returns the score of every configuration, given those of the distinct ones.
async fn fan_out(
    resources: &Resources,
    plan: Arc<Plan>,
    distinct_scores: Vec<f32>,
    class: Class,
) -> Result<Vec<f32>, EngineError> {
    match class {
        // Too little to hand to a worker.
        Class::Interactive => Ok(plan.fan_out(&distinct_scores)),
        Class::Bulk => Ok(resources
            .pool
            .run(Class::Bulk, move |_| plan.fan_out(&distinct_scores))
            .await?
            .value),
    }
}
