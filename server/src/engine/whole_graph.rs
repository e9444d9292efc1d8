//! Whole-graph models: the graph as it is, with the configurations in chunks of the model's own size.
//!
//! Where a score depends on the other configurations of its chunk, chunks are what was sent in the order sent, the
//! last one shorter; nothing is merged, padded or left out. Elsewhere each distinct configuration is evaluated once.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Configurations, Distinct, FEATURES, Graph, Pad, SegmentedGraph};

use super::{Engine, EngineError, Terms, backlog::Work, block::ROW_MULTIPLE, check_scores};
use crate::{
    compute::{Class, Computed},
    memory::{Held, Memory},
    model::{Interrupt, Model, WholeGraphInput},
    outcome::{Evaluation, Reuse, Stages},
};

/// Stops the runs of a call that nobody waits for any more: a chunk of a large graph takes long.
struct StopOnDrop(Arc<Interrupt>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What a batch asks of a whole-graph model.
struct Batch {
    graph: WholeGraphInput,
    configurations: Configurations,
    /// The configurations that are evaluated: those that differ, or all.
    evaluated: Distinct,
    distinct_configs: usize,
    _held: Held,
}

impl Engine {
    /// Scores each configuration by a whole-graph model that takes `chunk_configs` at a time.
    pub(super) async fn score_whole_graph<E: From<EngineError> + Send + 'static>(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        read: impl FnOnce() -> Result<Configurations, E> + Send + 'static,
        chunk_configs: usize,
        terms: Terms,
    ) -> Result<Evaluation, E> {
        let prepared = {
            let (model, graph, memory) = (Arc::clone(model), Arc::clone(graph), Arc::clone(&self.memory));
            self.pool
                .run(terms.class, move |_| Ok::<_, E>(Batch::new(&model, &graph.whole, read()?, &memory)?))
        };
        let Computed { value: batch, waited } = prepared.await.map_err(EngineError::from)?;
        let batch = Arc::new(batch?);
        let work = self.backlog.add(model.digest(), graph.hash, batch.nodes(), terms)?;
        Ok(self.evaluate_whole_graph(model, batch, chunk_configs, waited, work, terms.class).await?)
    }

    async fn evaluate_whole_graph(
        &self,
        model: &Arc<Model>,
        batch: Arc<Batch>,
        chunk_configs: usize,
        waited: Duration,
        work: Work,
        class: Class,
    ) -> Result<Evaluation, EngineError> {
        let planned = Instant::now();
        let count = batch.evaluated.first.len();
        // The size of a chunk means nothing where scores do not depend on it.
        let multiple = if model.manifest().batch_dependent { 1 } else { ROW_MULTIPLE };
        let at_once = chunk_configs.min(count).next_multiple_of(multiple);
        let distinct_scores = self.score_chunks(model, &batch, at_once, multiple, work, class).await?;
        let encoded = Instant::now();
        let reuse = batch.reuse();
        let scores = self.pool.run(class, move |_| batch.evaluated.fan_out(&distinct_scores)).await?.value;
        check_scores(model, &scores)?;
        let stages = Stages { waited, planned, encoded, scored: Instant::now() };
        Ok(Evaluation { scores, reuse, stages })
    }

    /// Scores what is evaluated, so many configurations at a time; the last of a chunk is repeated up to the next
    /// multiple.
    async fn score_chunks(
        &self,
        model: &Arc<Model>,
        batch: &Arc<Batch>,
        at_once: usize,
        multiple: usize,
        work: Work,
        class: Class,
    ) -> Result<Vec<f32>, EngineError> {
        let (model, batch, count) = (Arc::clone(model), Arc::clone(batch), batch.evaluated.first.len());
        let interrupt = Arc::new(model.interrupt()?);
        let _stop = StopOnDrop(Arc::clone(&interrupt));
        let score = move |worker, range: Range<usize>| {
            let count = range.len();
            let mut chunk = batch.evaluated.first[range].to_vec();
            chunk.resize(count.next_multiple_of(multiple), chunk[count - 1]);
            let config = batch.configurations.batch().input(&chunk);
            let started = Instant::now();
            let mut scores = model.score_whole_graph(worker, &batch.graph, &config, &interrupt)?;
            work.ran(batch.graph.opcode.len() * count, started.elapsed());
            scores.truncate(count);
            Ok(scores)
        };
        self.score_in_chunks(count, at_once, class, score).await
    }
}

impl Batch {
    fn new(
        model: &Model,
        graph: &Graph,
        configurations: Configurations,
        memory: &Arc<Memory>,
    ) -> Result<Self, EngineError> {
        let manifest = model.manifest();
        let held = memory.hold(graph_input_bytes(graph))?;
        let graph = graph_input(graph, manifest.pad())
            .ok_or_else(|| EngineError::PadUnknown { model: manifest.name.clone() })?;
        let distinct = configurations.batch().distinct();
        let distinct_configs = distinct.first.len();
        let evaluated = if manifest.batch_dependent { Distinct::all(configurations.len()) } else { distinct };
        Ok(Self { graph, configurations, evaluated, distinct_configs, _held: held })
    }

    /// What there is to evaluate.
    fn nodes(&self) -> usize {
        self.graph.opcode.len() * self.evaluated.first.len()
    }

    fn reuse(&self) -> Reuse {
        Reuse {
            configs: self.configurations.len(),
            distinct_configs: self.distinct_configs,
            segment_rows: self.configurations.len(),
            distinct_segment_rows: self.evaluated.first.len(),
            rows_evaluated: self.evaluated.first.len(),
        }
    }
}

/// Bytes of what the model takes of a graph.
fn graph_input_bytes(graph: &Graph) -> usize {
    let nodes = graph.opcodes().len() * (size_of::<i64>() + FEATURES * size_of::<f32>());
    nodes + (2 * graph.edges().len() + graph.configurable().len()) * size_of::<i64>()
}

/// What the model takes of a graph; `None` where the pad that it needs cannot be had.
fn graph_input(graph: &Graph, pad: Pad) -> Option<WholeGraphInput> {
    let ends = |end: usize| graph.edges().iter().map(move |edge| i64::from(edge[end]));
    Some(WholeGraphInput {
        opcode: graph.opcodes().iter().map(|&opcode| opcode.into()).collect(),
        features: graph.features(pad)?,
        edges: ends(0).chain(ends(1)).collect(),
        configurable: graph.configurable().iter().map(|&node| node.into()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{GraphArrays, Limits, Task};

    use super::*;

    fn graph(pad: Pad) -> Graph {
        let features = vec![pad.value(); 3 * FEATURES];
        let edges = vec![[2, 1], [1, 0]];
        let arrays = GraphArrays::from_features(vec![7, 8, 9], features, edges, pad, &Limits::default());
        Graph::new(Task::Layout, arrays.unwrap(), vec![2, 0]).unwrap()
    }

    #[test]
    fn a_model_gets_the_whole_graph() {
        let input = graph_input(&graph(Pad::Zero), Pad::Zero).unwrap();
        assert_eq!(input.opcode, [7, 8, 9]);
        assert_eq!(input.edges, [1, 2, 0, 1], "consumers, then producers");
        assert_eq!(input.configurable, [2, 0], "in slot order");
        assert_eq!(input.features.len(), 3 * FEATURES);
    }

    #[test]
    fn features_are_padded_as_the_model_needs_them_or_not_at_all() {
        assert!(graph_input(&graph(Pad::Zero), Pad::MinusOne).is_none());
        let input = graph_input(&graph(Pad::MinusOne), Pad::MinusOne).unwrap();
        assert_eq!(input.features[134..140], [-1.0; 6]);
    }
}
