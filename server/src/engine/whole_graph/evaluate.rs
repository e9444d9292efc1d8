use std::{ops::Range, sync::Arc, time::Instant};

use hlorank_graph::SegmentedGraph;

use super::{
    batch::Batch,
    passes::{PassRoom, Runs},
};
use crate::{
    compute::{Class, Worker},
    engine::{
        BatchPart, EngineError, Terms, backlog::BacklogWork, error::check_scores,
        resources::Resources,
    },
    model::{ModelFailed, ModelNodes, RunSizes, WholeGraphModel},
    outcome::{Evaluation, Stages},
    runtime::Interrupt,
};

/// The chunks of one batch.
struct Chunks {
    model: Arc<WholeGraphModel>,
    batch: Arc<Batch>,
    work: BacklogWork,
    /// The number of configurations of a run is a multiple of this.
    multiple: usize,
}

/// Refuses a graph that is too large for the model, before its configurations are read. How much pruning keeps is not known
/// yet.
pub(crate) fn check(
    resources: &Resources,
    model: &WholeGraphModel,
    graph: &SegmentedGraph,
) -> Result<(), EngineError> {
    if model.settings.nodes == ModelNodes::Pruned {
        return Ok(());
    }
    let graph = &graph.whole;
    let smallest = RunSizes {
        nodes: graph.len(),
        edges: graph.edges().len(),
        slots: 0,
        configs: 1,
    };
    Runs::plan(model, smallest, &PassRoom::new(resources, model)).map(drop)
}

/// Scores configurations.
pub(crate) async fn score(
    resources: &Resources,
    model: &Arc<WholeGraphModel>,
    graph: &Arc<SegmentedGraph>,
    part: BatchPart,
    terms: Terms,
) -> Result<Evaluation, EngineError> {
    check(resources, model, graph)?;
    let room = PassRoom::new(resources, model);
    let multiple = room.multiple;
    let (planned_model, planned_graph) = (Arc::clone(model), Arc::clone(graph));
    let plan = move |_| {
        let configurations = part.into_configurations();
        Batch::new(&planned_model, &planned_graph.whole, configurations, &room)
    };
    let planned = resources.pool.run(terms.class, plan).await?;
    let batch = Arc::new(planned.value?);
    let waited = planned.waited;
    let work = resources
        .backlog
        .add(model.facts.digest, graph.hash, batch.nodes(), terms)?;
    let chunks = Chunks {
        model: Arc::clone(model),
        batch: Arc::clone(&batch),
        work,
        multiple,
    };
    let planned = Instant::now();
    let scores = chunks.score_all(resources, terms.class).await?;
    let encoded = Instant::now();
    let reuse = batch.reuse();
    let fan_out = move |_| batch.evaluated.fan_out(&batch.passes.mean(&scores));
    let scores = resources.pool.run(terms.class, fan_out).await?.value;
    check_scores(&model.facts, &scores)?;
    let stages = Stages {
        waited,
        planned,
        encoded,
        scored: Instant::now(),
    };
    Ok(Evaluation {
        scores,
        reuse,
        unscored: None,
        stages,
    })
}

impl Chunks {
    /// Scores all chunks, as many at a time as memory allows. Returns the scores in the order of
    /// the passes.
    async fn score_all(self, resources: &Resources, class: Class) -> Result<Vec<f32>, EngineError> {
        let own = Arc::new(self);
        let runs = own.batch.runs;
        // If memory has room for fewer runs than there are workers, a group of chunks ends before
        // the next one begins. Otherwise no worker waits for the slowest chunk of a group.
        let at_once = if runs.at_once < resources.pool.workers() {
            runs.at_once
        } else {
            usize::MAX
        };
        let mut scores = Vec::new();
        for chunks in own.batch.passes.chunks.chunks(at_once) {
            let shared = Arc::clone(&own);
            let score =
                move |worker, range, interrupt: &Interrupt| shared.score(worker, range, interrupt);
            let interrupt = own.model.interrupt(runs.bytes)?;
            let of_chunks = resources
                .score_in_chunks(chunks.to_vec(), class, interrupt, score)
                .await?;
            scores.extend(of_chunks.into_iter().flatten());
        }
        Ok(scores)
    }

    /// Scores one chunk. Its last configuration is repeated up to the next multiple.
    fn score(
        &self,
        worker: Worker,
        range: Range<usize>,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let batch = &self.batch;
        let count = range.len();
        let chunk = batch.padded_chunk(range, self.multiple);
        let config = batch.configurations.batch().input(&chunk);
        let started = Instant::now();
        let mut scores = self.model.score(worker, &batch.graph, &config, interrupt)?;
        // Copies are work of the run, but no work that the call has queued.
        self.work.ran(batch.graph.nodes * count, started.elapsed());
        scores.truncate(count);
        Ok(scores)
    }
}
