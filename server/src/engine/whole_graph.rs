//! Whole-graph models: the graph as it is, with the configurations in chunks of the model's own size.
//!
//! Where a score depends on the other configurations of its chunk, chunks are what was sent in the order sent, the
//! last one shorter; nothing is merged, padded or left out. Elsewhere each distinct configuration is evaluated once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use hlorank_graph::{Configurations, Graph, LayoutEntry, Pad, SegmentedGraph};

use super::{
    Engine, EngineError, Evaluation, Reuse, Stages, block::ROW_MULTIPLE, check_scores, distinct::Distinct,
};
use crate::compute::Computed;
use crate::registry::{ConfigInput, Model, ModelFailed, WholeGraphInput};

/// What a batch asks of a whole-graph model.
struct Batch {
    graph: WholeGraphInput,
    configurations: Configurations,
    distinct: Distinct,
    /// The configurations that are evaluated, in order: those that differ, or all.
    evaluated: Vec<usize>,
}

impl Engine {
    /// Scores each configuration by a whole-graph model that takes `chunk_configs` at a time.
    pub(super) async fn score_whole_graph<E: From<EngineError> + Send + 'static>(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        read: impl FnOnce() -> Result<Configurations, E> + Send + 'static,
        chunk_configs: usize,
    ) -> Result<Evaluation, E> {
        let prepared = {
            let (model, graph) = (Arc::clone(model), Arc::clone(graph));
            self.pool.run(move |_| Ok::<_, E>(Batch::new(&model, &graph.whole, read()?)?))
        };
        let Computed { value: batch, waited } = prepared.await.map_err(EngineError::from)?;
        Ok(self.evaluate_whole_graph(model, Arc::new(batch?), chunk_configs, waited).await?)
    }

    async fn evaluate_whole_graph(
        &self,
        model: &Arc<Model>,
        batch: Arc<Batch>,
        chunk_configs: usize,
        waited: Duration,
    ) -> Result<Evaluation, EngineError> {
        let planned = Instant::now();
        let starts = (0..batch.evaluated.len()).step_by(chunk_configs);
        let chunks = starts.map(|start| self.score_chunk(model, &batch, start, chunk_configs));
        let chunks: Vec<Vec<f32>> =
            stream::iter(chunks).buffered(2 * self.pool.workers()).try_collect().await?;
        let encoded = Instant::now();
        let reuse = batch.reuse();
        let scores = self.pool.run(move |_| batch.fan_out(chunks.concat())).await?.value;
        check_scores(model, &scores)?;
        let stages = Stages { waited, planned, encoded, scored: Instant::now() };
        Ok(Evaluation { scores, reuse, stages })
    }

    /// Scores the chunk of evaluated configurations that begins at `start`.
    async fn score_chunk(
        &self,
        model: &Arc<Model>,
        batch: &Arc<Batch>,
        start: usize,
        chunk_configs: usize,
    ) -> Result<Vec<f32>, EngineError> {
        let (model, batch) = (Arc::clone(model), Arc::clone(batch));
        let scored = self.pool.run(move |worker| {
            let end = batch.evaluated.len().min(start + chunk_configs);
            let mut chunk = batch.evaluated[start..end].to_vec();
            if !model.manifest().batch_dependent {
                let length = chunk.len().next_multiple_of(ROW_MULTIPLE).min(chunk_configs);
                chunk.resize(length, chunk[0]);
            }
            let config = config_input(&batch.configurations, &chunk);
            let mut scores = model.score_whole_graph(worker, &batch.graph, chunk.len(), &config)?;
            scores.truncate(end - start);
            Ok::<_, ModelFailed>(scores)
        });
        Ok(scored.await?.value?)
    }
}

impl Batch {
    fn new(model: &Model, graph: &Graph, configurations: Configurations) -> Result<Self, EngineError> {
        let manifest = model.manifest();
        let graph = graph_input(graph, manifest.pad())
            .ok_or_else(|| EngineError::PadUnknown { model: manifest.name.clone() })?;
        let distinct = Distinct::of(&configurations);
        let evaluated = if manifest.batch_dependent {
            (0..configurations.len()).collect()
        } else {
            distinct.first.clone()
        };
        Ok(Self { graph, configurations, distinct, evaluated })
    }

    /// The score of every configuration from those of the evaluated ones; as many means that they are the same.
    fn fan_out(&self, scores: Vec<f32>) -> Vec<f32> {
        if scores.len() == self.configurations.len() { scores } else { self.distinct.fan_out(&scores) }
    }

    fn reuse(&self) -> Reuse {
        Reuse {
            configs: self.configurations.len(),
            distinct_configs: self.distinct.first.len(),
            segment_rows: self.configurations.len(),
            distinct_segment_rows: self.evaluated.len(),
            rows_evaluated: self.evaluated.len(),
        }
    }
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

fn config_input(configurations: &Configurations, chunk: &[usize]) -> ConfigInput {
    match configurations {
        Configurations::Layout(batch) => {
            let entries = |&config| (0..batch.slots()).map(move |slot| batch.entry(config, slot));
            let values = chunk.iter().flat_map(entries).flat_map(LayoutEntry::values);
            ConfigInput::Layout(values.map(i64::from).collect())
        }
        Configurations::Tile(batch) => {
            ConfigInput::Tile(chunk.iter().flat_map(|&config| batch.get(config).features()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{FEATURES, GraphArrays, LAYOUT_VALUES, LayoutBatchBuilder, Limits, Task};

    use super::*;

    fn layouts(configs: &[[i32; 2]]) -> Configurations {
        let entry = |value| LayoutEntry::from_values(&[value; LAYOUT_VALUES], String::new).unwrap();
        let mut builder = LayoutBatchBuilder::new(2, Limits::default());
        for config in configs {
            builder.push(&config.map(entry)).unwrap();
        }
        Configurations::Layout(builder.build().unwrap())
    }

    #[test]
    fn a_chunk_holds_its_configurations_slot_by_slot() {
        let ConfigInput::Layout(values) = config_input(&layouts(&[[1, -1], [2, 5], [0, 4]]), &[2, 0]) else {
            panic!("layouts");
        };
        let expected = [0, 4, 1, -1].map(|value| [value; LAYOUT_VALUES]);
        assert_eq!(values, expected.as_flattened());
    }

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
