use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

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
    engine::{BatchPart, EngineError, Terms, error::check_scores, resources::Resources},
    model::SegmentModel,
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
        let Computed {
            value: prepared,
            waited,
        } = preparation.run(resources, part, terms).await?;
        self.evaluate(resources, prepared, waited, terms).await
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
        let form = move |_| {
            let configurations = part.into_configurations();
            (kernels_of(&whole, &configurations), configurations)
        };
        let (kernels, configurations) = resources.pool.run(terms.class, form).await?.value;
        let part = BatchPart::from(configurations);
        let preparation = Preparation::new(model, graph, &self.embeddings, &resources.memory)?;
        let prepared = preparation.run(resources, part, terms).await?.value;
        let PreparedBatch {
            plan,
            looked_up,
            held,
            ..
        } = prepared;
        let completed = self
            .embeddings
            .complete(model, graph, &plan, looked_up, terms)
            .await?;
        let seconds = score_rows(resources, model, completed.embeddings, terms.class).await?;
        drop(held);
        let timed = kernels
            .iter()
            .enumerate()
            .map(|(config, kernels)| plan.timed(config, kernels, &seconds));
        Ok(timed.collect())
    }

    async fn evaluate(
        &self,
        resources: &Resources,
        PreparedBatch {
            model,
            graph,
            plan,
            looked_up,
            held,
        }: PreparedBatch,
        waited: Duration,
        terms: Terms,
    ) -> Result<Evaluation, EngineError> {
        let planned = Instant::now();
        let completed = self
            .embeddings
            .complete(&model, &graph, &plan, looked_up, terms)
            .await?;
        let encoded = Instant::now();
        let distinct = score_sums(resources, &model, &plan, completed.embeddings, terms).await?;
        drop(held);
        let reuse = plan.reuse(completed.evaluated);
        let mut scores = fan_out(resources, Arc::clone(&plan), distinct, terms.class).await?;
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

/// Scores every row by itself, as if a configuration had no other.
async fn score_rows(
    resources: &Resources,
    model: &Arc<SegmentModel>,
    mut embeddings: Vec<f32>,
    class: Class,
) -> Result<Vec<f32>, EngineError> {
    let size = model.settings().embedding_size;
    let rows = embeddings.len() / size;
    let padded = rows.next_multiple_of(resources.device().row_multiple);
    embeddings.resize(padded * size, 0.0);
    let interrupt = Arc::new(model.interrupt()?);
    let model = Arc::clone(model);
    let score = move |worker, interrupt: &Interrupt| model.score(worker, &embeddings, interrupt);
    Ok(resources
        .pool
        .run_session(class, interrupt, score)
        .await??)
}

/// Sums the embeddings of every distinct configuration, and scores the sums.
async fn score_sums(
    resources: &Resources,
    model: &Arc<SegmentModel>,
    plan: &Arc<Plan>,
    embeddings: Vec<f32>,
    terms: Terms,
) -> Result<Vec<f32>, EngineError> {
    let model = Arc::clone(model);
    let plan = Arc::clone(plan);
    let device = resources.device();
    let count = plan.distinct_configs();
    let size = model.settings().embedding_size;
    // A chunk reads about as many embeddings as fit the processor's cache, however many rows a configuration has.
    let rows_per_config = (plan.rows_of_configs() / count.max(1)).max(1);
    let at_once =
        (device.head_embeddings / rows_per_config).clamp(device.row_multiple, device.head_configs);
    let chunks = (0..count)
        .step_by(at_once)
        .map(|start| start..count.min(start + at_once))
        .collect();
    let interrupt = model.interrupt()?;
    let score = move |worker: Worker, configs: Range<usize>, interrupt: &Interrupt| {
        let count = configs.len();
        let padded = configs.len().next_multiple_of(device.row_multiple);
        let mut tree = SumTree::new(&embeddings, size);
        let mut sums = Vec::with_capacity(padded * size);
        plan.rows_of(configs)
            .for_each(|rows| sums.extend_from_slice(tree.sum(rows)));
        sums.resize(padded * size, 0.0);
        let mut scores = model.score(worker, &sums, interrupt)?;
        scores.truncate(count);
        Ok(scores)
    };
    let chunks: Vec<Vec<f32>> = resources
        .score_in_chunks(chunks, terms.class, interrupt, score)
        .await?;
    Ok(chunks.concat())
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
