//! Scores configurations: each distinct configuration once, and within a call each distinct pair of segment and
//! local configuration once.
//!
//! [`Engine::score`] is the one entry point. Work is cut into blocks that go to the compute pool one by one, so
//! that requests take turns, and dropping the future stops what has not started.

mod block;
mod plan;
mod ranking;

use std::{sync::Arc, time::Instant};

use futures::{StreamExt, TryStreamExt, stream};
use hlorank_graph::{Configurations, Pad, SegmentedGraph};
pub use ranking::rank;

use self::{
    block::Block,
    plan::{Plan, TooManyRows},
};
use crate::{
    compute::{ComputePool, WorkerFailed},
    registry::{Model, ModelFailed},
};

/// Evaluates models on the compute pool.
pub struct Engine {
    pool: Arc<ComputePool>,
}

/// What a model says of a batch.
#[derive(Debug)]
pub struct Evaluation {
    /// `[configs]` scores, lower is predicted faster.
    pub scores: Vec<f32>,
    /// How much was shared.
    pub reuse: Reuse,
    /// When each stage ended.
    pub stages: Stages,
}

/// How many things were asked for, and how many were evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Configurations.
    pub configs: usize,
    /// Configurations that differ.
    pub distinct_configs: usize,
    /// Pairs of segment and configuration.
    pub segment_rows: usize,
    /// Pairs of segment and local configuration that differ: what the encoder ran on.
    pub distinct_segment_rows: usize,
}

/// When the stages of an evaluation ended.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    /// The distinct rows were found.
    pub planned: Instant,
    /// The encoder was done.
    pub encoded: Instant,
    /// Every configuration had its score.
    pub scored: Instant,
}

/// Why there are no scores.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The model needs features padded with −1, and the graph came padded with 0.
    #[error(
        "model `{model}` needs features padded with -1, but the graph came as features padded with 0; send the HLO \
         module, or features with pad_value -1"
    )]
    PadUnknown {
        /// The model.
        model: String,
    },
    /// The batch would take too much memory.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// The model gave NaN or infinity.
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
    /// ONNX Runtime failed.
    #[error(transparent)]
    Model(#[from] ModelFailed),
    /// A worker panicked.
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

/// Distinct configurations that the head takes at a time.
const HEAD_CONFIGS: usize = 4096;

impl Engine {
    /// Uses a pool whose workers each have a session of every model.
    #[must_use]
    pub fn new(pool: Arc<ComputePool>) -> Self {
        Self { pool }
    }

    /// Scores each configuration. `configurations` must be of the graph's task and fit its slots.
    pub async fn score(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        configurations: Configurations,
    ) -> Result<Evaluation, EngineError> {
        check_pad(model, graph)?;
        let (plan, blocks) = self.plan(model, graph, configurations).await?;
        let planned = Instant::now();
        let embeddings = self.encode(model, graph, &plan, blocks).await?;
        let encoded = Instant::now();
        let distinct_scores = self.score_sums(model, &plan, &embeddings).await?;
        let (reuse, shared) = (plan.reuse(), plan);
        let scores = self.pool.run(move |_| shared.fan_out(&distinct_scores)).await?.value;
        check_scores(model, &scores)?;
        let stages = Stages { planned, encoded, scored: Instant::now() };
        Ok(Evaluation { scores, reuse, stages })
    }

    /// What has to be evaluated, and in which blocks.
    async fn plan(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        configurations: Configurations,
    ) -> Result<(Arc<Plan>, Vec<Block>), EngineError> {
        let (model, graph) = (Arc::clone(model), Arc::clone(graph));
        let planned = self.pool.run(move |_| {
            let plan = Plan::new(&graph, &configurations)?;
            let blocks = block::blocks(&plan, &graph, model.manifest());
            Ok::<_, TooManyRows>((Arc::new(plan), blocks))
        });
        Ok(planned.await?.value?)
    }

    /// The embedding of every row: `[rows, D]`.
    async fn encode(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
        blocks: Vec<Block>,
    ) -> Result<Arc<Vec<f32>>, EngineError> {
        let size = model.manifest().embedding_size;
        let mut embeddings = vec![0.0; plan.rows.len() * size];
        let encoded = blocks.into_iter().map(|block| self.encode_block(model, graph, plan, block));
        let mut encoded = stream::iter(encoded).buffered(self.in_flight());
        while let Some((rows, block_embeddings)) = encoded.try_next().await? {
            for (row, embedding) in rows.into_iter().zip(block_embeddings.chunks_exact(size)) {
                embeddings[row * size..][..size].copy_from_slice(embedding);
            }
        }
        Ok(Arc::new(embeddings))
    }

    async fn encode_block(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
        block: Block,
    ) -> Result<(Vec<usize>, Vec<f32>), EngineError> {
        let (model, graph, plan) = (Arc::clone(model), Arc::clone(graph), Arc::clone(plan));
        let encoded = self.pool.run(move |worker| {
            let input = block.encoder_input(&plan, &graph, model.manifest().pad());
            let embeddings = model.encode(worker, &input)?;
            Ok::<_, ModelFailed>((block.rows, embeddings))
        });
        Ok(encoded.await?.value?)
    }

    /// The score of every distinct configuration.
    async fn score_sums(
        &self,
        model: &Arc<Model>,
        plan: &Arc<Plan>,
        embeddings: &Arc<Vec<f32>>,
    ) -> Result<Vec<f32>, EngineError> {
        let starts = (0..plan.distinct_configs()).step_by(HEAD_CONFIGS);
        let scored = starts.map(|start| {
            let (model, plan, embeddings) = (Arc::clone(model), Arc::clone(plan), Arc::clone(embeddings));
            let scored = self.pool.run(move |worker| {
                let end = plan.distinct_configs().min(start + HEAD_CONFIGS);
                let mut sums = plan.sums(start..end, &embeddings, model.manifest().embedding_size);
                // A lone row rounds differently from the same row among others.
                if end - start == 1 {
                    sums.extend_from_within(..);
                }
                let mut scores = model.score(worker, &sums)?;
                scores.truncate(end - start);
                Ok::<_, ModelFailed>(scores)
            });
            async { Ok::<_, EngineError>(scored.await?.value?) }
        });
        let chunks: Vec<Vec<f32>> = stream::iter(scored).buffered(self.in_flight()).try_collect().await?;
        Ok(chunks.concat())
    }

    /// Blocks that one request has waiting or running: enough that no worker is idle.
    fn in_flight(&self) -> usize {
        2 * self.pool.workers()
    }
}

fn check_pad(model: &Model, graph: &SegmentedGraph) -> Result<(), EngineError> {
    let pad: Pad = model.manifest().pad();
    if graph.segments.iter().all(|segment| segment.can_pad(pad)) {
        return Ok(());
    }
    Err(EngineError::PadUnknown { model: model.manifest().name.clone() })
}

fn check_scores(model: &Model, scores: &[f32]) -> Result<(), EngineError> {
    match scores.iter().position(|score| !score.is_finite()) {
        None => Ok(()),
        Some(config) => Err(EngineError::InvalidOutput {
            model: model.manifest().name.clone(),
            config,
            score: scores[config],
        }),
    }
}
