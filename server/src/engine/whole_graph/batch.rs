use std::{borrow::Cow, ops::Range, sync::Arc};

use hlorank_graph::{Configurations, Distinct, Graph, Pad, PrunedGraph, Scope, prune};

use super::passes::{PassRoom, Passes, Runs};
use crate::{
    engine::EngineError,
    memory::{HeldBytes, Memory},
    model::{ModelNodes, RunSizes, WholeGraphInput, WholeGraphModel, WholeGraphSettings},
    outcome::Reuse,
};

/// A batch as a whole-graph model takes it.
pub(super) struct Batch {
    pub(super) graph: WholeGraphInput,
    pub(super) configurations: Configurations,
    /// The configurations that are evaluated: those that differ, or all.
    pub(super) evaluated: Distinct,
    /// The order and the chunks in which they are evaluated, by position in `evaluated`.
    pub(super) passes: Passes,
    pub(super) runs: Runs,
    distinct_configs: usize,
    _held: [HeldBytes; 3],
}

/// Bytes of a configuration in a pass: its place in the order and its score.
const PASS_BYTES: usize = size_of::<usize>() + size_of::<f32>();

impl Batch {
    /// Plans a batch, and holds the memory of its runs. Fails if a run over the graph needs more than a call may hold.
    pub(super) fn new(
        model: &WholeGraphModel,
        graph: &Graph,
        configurations: Configurations,
        room: &PassRoom,
    ) -> Result<Self, EngineError> {
        // Everything is counted before it is built: the inputs, the order of the passes, then the
        // runs at one time.
        let (graph, held_for_graph) = counted_input(model, graph, &room.memory)?;
        let distinct = configurations.batch().distinct();
        let distinct_configs = distinct.first.len();
        // If scores depend on the whole chunk, equal configurations can get different scores.
        let evaluated = if model.settings.batch_dependent {
            Distinct::all(configurations.len())
        } else {
            distinct
        };
        let configs = evaluated.first.len();
        let sizes = RunSizes {
            nodes: graph.nodes,
            edges: graph.edges.len() / 2,
            slots: graph.configurable.len(),
            configs,
        };
        let runs = Runs::plan(model, sizes, room)?;
        // Chunks have the size of runs, unless scores depend on the size.
        let settings = if model.settings.batch_dependent {
            Cow::Borrowed(&model.settings)
        } else {
            Cow::Owned(WholeGraphSettings {
                chunk_configs: runs.configs,
                ..model.settings.clone()
            })
        };
        let scores = Passes::scores(&settings, configs);
        let held_for_passes = room.memory.hold(scores.saturating_mul(PASS_BYTES))?;
        let passes = Passes::new(&settings, configs, room.multiple);
        // Of the runs that are made at one time.
        let of_input = chunk_input_bytes(&configurations, &passes, room.multiple);
        let at_once = runs.at_once.min(passes.chunks.len());
        let of_run = of_input.saturating_add(runs.bytes);
        let held_for_runs = room.memory.hold(of_run.saturating_mul(at_once))?;
        Ok(Self {
            graph,
            configurations,
            evaluated,
            passes,
            runs,
            distinct_configs,
            _held: [held_for_graph, held_for_passes, held_for_runs],
        })
    }

    /// Work in nodes.
    pub(super) fn nodes(&self) -> usize {
        self.graph.nodes.saturating_mul(self.passes.order.len())
    }

    /// Returns the numbers of the configurations of a chunk, given as a range of the order. The
    /// last one is repeated up to a multiple of `multiple`.
    pub(super) fn padded_chunk(&self, range: Range<usize>, multiple: usize) -> Vec<usize> {
        let chunk = &self.passes.order[range];
        let padded = chunk.len().next_multiple_of(multiple);
        let last = chunk.last().into_iter().cycle();
        let all = chunk.iter().chain(last).take(padded);
        all.map(|&config| self.evaluated.first[config]).collect()
    }

    pub(super) fn reuse(&self) -> Reuse {
        Reuse {
            configs: self.configurations.len(),
            distinct_configs: self.distinct_configs,
            segment_rows: self.configurations.len() * self.passes.count(),
            distinct_segment_rows: self.passes.order.len(),
            rows_evaluated: self.passes.order.len(),
        }
    }
}

/// Returns what the model takes of a graph, and the memory that it holds.
fn counted_input(
    model: &WholeGraphModel,
    graph: &Graph,
    memory: &Arc<Memory>,
) -> Result<(WholeGraphInput, HeldBytes), EngineError> {
    let facts = &model.facts;
    let taken = taken_nodes(graph, model.settings.nodes);
    if taken.nodes.is_empty() {
        return Err(EngineError::NothingKept {
            model: facts.name.clone(),
        });
    }
    let node_bytes = size_of::<i64>() + graph.columns() * size_of::<f32>();
    let indices = 2 * taken.edges.len() + graph.configurable().len();
    let held = memory.hold(taken.nodes.len() * node_bytes + indices * size_of::<i64>())?;
    let input =
        graph_input(graph, &taken, facts.pad).ok_or_else(|| EngineError::pad_unknown(facts))?;
    Ok((input, held))
}

/// The nodes and edges of a graph that the model takes.
fn taken_nodes(graph: &Graph, nodes: ModelNodes) -> PrunedGraph {
    match nodes {
        ModelNodes::All => PrunedGraph::whole(graph),
        ModelNodes::Pruned => prune(graph),
    }
}

/// Number of bytes of the configurations of the largest chunk, if they are columns of a feature set: a table is much smaller
/// than what it stands for.
fn chunk_input_bytes(configurations: &Configurations, passes: &Passes, multiple: usize) -> usize {
    let Configurations::FeatureSet(batch) = configurations else {
        return 0;
    };
    let largest = passes
        .chunks
        .iter()
        .map(Range::len)
        .max()
        .unwrap_or_default()
        .next_multiple_of(multiple);
    largest.saturating_mul(batch.nodes() * batch.columns() * size_of::<f32>())
}

/// Makes the inputs for a graph; `None` if it cannot be padded as the model needs it.
fn graph_input(graph: &Graph, taken: &PrunedGraph, pad: Pad) -> Option<WholeGraphInput> {
    // A graph of a feature set has no opcodes.
    let opcode = |&node: &u32| {
        graph
            .opcodes()
            .get(node as usize)
            .map(|&opcode| i64::from(opcode))
    };
    let ends = |end: usize| taken.edges.iter().map(move |edge| i64::from(edge[end]));
    Some(WholeGraphInput {
        nodes: taken.nodes.len(),
        opcode: taken.nodes.iter().filter_map(opcode).collect(),
        features: graph.features_of(&taken.nodes, pad)?,
        // `[2, edges]`: consumers, then producers.
        edges: ends(0).chain(ends(1)).collect(),
        configurable: configurable_positions(graph, taken),
    })
}

/// Returns where the configurable nodes are among the nodes that the model takes, in slot order.
fn configurable_positions(graph: &Graph, taken: &PrunedGraph) -> Vec<i64> {
    // Configurations of a feature set are in the order of the nodes.
    if graph.task().kind().scope != Scope::Nodes {
        return Vec::new();
    }
    // Pruning keeps every configurable node, so no position that is read stays 0 by mistake.
    let mut positions = vec![0; graph.len()];
    for (position, &node) in (0..).zip(&taken.nodes) {
        positions[node as usize] = position;
    }
    let slots = graph.configurable().iter();
    slots.map(|&node| positions[node as usize]).collect()
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{FEATURES, GraphArrays, Limits, Task};

    use super::*;

    #[test]
    fn a_model_gets_the_whole_graph() {
        let features = vec![0.0; 3 * FEATURES];
        let edges = vec![[2, 1], [1, 0]];
        let limits = Limits::default();
        let arrays = GraphArrays::from_features(vec![7, 8, 9], features, edges, Pad::Zero, &limits);
        let graph = Graph::new(Task::Layout, arrays.unwrap(), vec![2, 0]).unwrap();
        let taken = taken_nodes(&graph, ModelNodes::All);
        let input = graph_input(&graph, &taken, Pad::Zero).unwrap();
        assert_eq!(input.opcode, [7, 8, 9]);
        assert_eq!(input.edges, [1, 2, 0, 1], "consumers, then producers");
        assert_eq!(input.configurable, [2, 0], "in slot order");
        assert_eq!(input.features.len(), 3 * FEATURES);
    }
}
