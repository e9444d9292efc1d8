use std::sync::Arc;

use hlorank_graph::{Configurations, Distinct, FEATURES, Graph, Pad};

use crate::{
    engine::EngineError,
    memory::{Held, Memory},
    model::{WholeGraphInput, WholeGraphModel},
    outcome::Reuse,
};

/// A batch as a whole-graph model takes it.
pub(super) struct Batch {
    pub(super) graph: WholeGraphInput,
    pub(super) configurations: Configurations,
    /// The configurations that are evaluated: those that differ, or all.
    pub(super) evaluated: Distinct,
    distinct_configs: usize,
    _held: Held,
}

impl Batch {
    pub(super) fn new(
        model: &WholeGraphModel,
        graph: &Graph,
        configurations: Configurations,
        memory: &Arc<Memory>,
    ) -> Result<Self, EngineError> {
        let held = memory.hold(graph_input_bytes(graph))?;
        let graph =
            graph_input(graph, model.facts().pad).ok_or_else(|| EngineError::pad_unknown(model.facts()))?;
        let distinct = configurations.batch().distinct();
        let distinct_configs = distinct.first.len();
        let evaluated =
            if model.settings().batch_dependent { Distinct::all(configurations.len()) } else { distinct };
        Ok(Self { graph, configurations, evaluated, distinct_configs, _held: held })
    }

    /// Work in nodes.
    pub(super) fn nodes(&self) -> usize {
        self.graph.opcode.len() * self.evaluated.first.len()
    }

    pub(super) fn reuse(&self) -> Reuse {
        Reuse {
            configs: self.configurations.len(),
            distinct_configs: self.distinct_configs,
            segment_rows: self.configurations.len(),
            distinct_segment_rows: self.evaluated.first.len(),
            rows_evaluated: self.evaluated.first.len(),
        }
    }
}

/// Number of bytes of a graph as the model takes it.
fn graph_input_bytes(graph: &Graph) -> usize {
    let nodes = graph.opcodes().len() * (size_of::<i64>() + FEATURES * size_of::<f32>());
    nodes + (2 * graph.edges().len() + graph.configurable().len()) * size_of::<i64>()
}

/// Makes the inputs for a graph; `None` if it cannot be padded as the model needs it.
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
