//! Graphs as the messages in which clients send them.

use hlorank_proto::v1::{self, GraphFeatures, graph::Source};

use super::{checked::Graph, feature_graph::FeatureGraph};
use crate::{
    FEATURES, FusionProgram, GraphArrays, GraphError, HloModule, InstanceFeatures, Limits,
    NodeDescription, Pad, Scope, Task, pace,
};

impl Graph {
    /// Returns the message of a graph without its names; `None` for a program before fusion, whose kernels need the module.
    pub fn to_message(&self) -> Option<v1::Graph> {
        if self.program().is_some() {
            return None;
        }
        let (source, configurable_nodes) = match self.feature_graph() {
            // Every node of such a graph is configurable, and the list is left out.
            Some(graph) => (Source::FeatureGraph(graph.to_message()), Vec::new()),
            None => (
                Source::Features(self.to_features()),
                self.configurable().to_vec(),
            ),
        };
        Some(v1::Graph {
            source: Some(source),
            task: v1::Task::from(self.task()).into(),
            configurable_nodes,
        })
    }

    /// Reads and checks a graph that was sent, with its task and, if it is one of layouts, its configurable nodes.
    pub fn of_message(graph: &v1::Graph, task: Task, limits: &Limits) -> Result<Self, GraphError> {
        let configurable = graph.configurable_nodes.clone();
        match &graph.source {
            Some(Source::HloModule(module)) => {
                HloModule::read(module, limits)?.into_graph(task, configurable)
            }
            Some(Source::HloText(text)) => {
                HloModule::read_text(text, limits)?.into_graph(task, configurable)
            }
            Some(Source::Features(features)) => Self::new(
                task,
                GraphArrays::of_message(features, limits)?,
                configurable,
            ),
            Some(Source::FeatureGraph(graph)) => {
                FeatureGraph::of_message(graph, limits).map(Self::of_features)
            }
            // The caller looks up a hash in its cache before it reads a graph, so here it stands
            // for nothing.
            Some(Source::GraphHash(_)) | None => Err(GraphError::Empty),
        }
    }

    /// Returns the arrays of a graph of HLO. Sequences are padded with −1 if their lengths are known, otherwise with 0.
    pub fn to_features(&self) -> GraphFeatures {
        // −1 tells an unused place from dimension 0, so it keeps the lengths; features padded with
        // 0 have lost them.
        let (pad_value, features) = match self.features(Pad::MinusOne) {
            Some(features) => (-1, little_endian(&features)),
            None => (0, little_endian(self.raw_features())),
        };
        GraphFeatures {
            node_opcode: self.opcodes().to_vec().into(),
            node_feat: features.into(),
            edge_index: self.edges().as_flattened().to_vec(),
            pad_value,
            operands: self
                .operands()
                .map_or_else(Vec::new, |operands| operands.numbers().to_vec()),
        }
    }
}

impl GraphArrays {
    /// Reads and checks arrays that were sent.
    pub fn of_message(features: &GraphFeatures, limits: &Limits) -> Result<Self, GraphError> {
        let pad = Pad::from_value(features.pad_value).ok_or(GraphError::PadValue {
            found: features.pad_value,
        })?;
        Self::from_features(
            features.node_opcode.to_vec(),
            read_floats(
                "node_feat (in bytes)",
                &features.node_feat,
                features.node_opcode.len() * FEATURES,
            )?,
            read_edges("edge_index", &features.edge_index)?,
            pad,
            limits,
        )?
        .with_operands(features.operands.clone())
    }
}

impl FeatureGraph {
    /// Reads and checks a graph that was sent.
    pub fn of_message(graph: &v1::FeatureGraph, limits: &Limits) -> Result<Self, GraphError> {
        let bytes = &graph.node_features;
        let nodes = match graph.nodes {
            // A space of parameters has one node without columns, and may leave out the number of
            // nodes.
            0 if bytes.is_empty() => 1,
            nodes => nodes as usize,
        };
        // If the bytes are no whole floats, the error gives the next length that would fit the
        // nodes.
        let values = (bytes.len() / size_of::<f32>()).next_multiple_of(nodes.max(1));
        let features = read_floats("node_features (in bytes)", bytes, values)?;
        let edges = read_edges("edges", &graph.edges)?;
        let read = Self::new(graph.feature_set.clone(), nodes, features, edges, limits)?;
        let read = read.of_instance(graph.instance.clone())?;
        let features = InstanceFeatures::of_message(&graph.instance_features);
        let read = read.with_instance_features(features.map_err(GraphError::InstanceFeatures)?)?;
        if graph.config_columns.is_empty() && graph.node_columns.is_empty() {
            return Ok(read);
        }
        read.described(graph.node_columns.clone(), graph.config_columns.clone())
    }

    /// Returns the message of the graph.
    pub fn to_message(&self) -> v1::FeatureGraph {
        let described = self.description();
        v1::FeatureGraph {
            feature_set: self.set().to_owned(),
            nodes: u32::try_from(self.nodes()).unwrap_or(u32::MAX),
            node_features: little_endian(self.features()).into(),
            edges: self.edges().as_flattened().to_vec(),
            node_columns: described.map_or_else(Vec::new, |set| set.node_features().to_vec()),
            config_columns: described.map_or_else(Vec::new, |set| set.config_features().to_vec()),
            instance: self.instance().to_owned(),
            instance_features: self.instance_features().to_message(),
        }
    }
}

/// Reads an array of floats, which should have `expected` values.
fn read_floats(array: &'static str, bytes: &[u8], expected: usize) -> Result<Vec<f32>, GraphError> {
    let (quads, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        let expected = expected * size_of::<f32>();
        return Err(GraphError::ArrayLength {
            array,
            found: bytes.len(),
            expected,
        });
    }
    Ok(quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect())
}

fn read_edges(array: &'static str, nodes: &[u32]) -> Result<Vec<[u32; 2]>, GraphError> {
    let (edges, rest) = nodes.as_chunks::<2>();
    if !rest.is_empty() {
        let expected = 2 * (edges.len() + 1);
        return Err(GraphError::ArrayLength {
            array,
            found: nodes.len(),
            expected,
        });
    }
    Ok(edges.to_vec())
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

impl HloModule<'_> {
    /// Returns the graph of this module. `configurable` lists the configurable nodes in slot order; those of a program
    /// before fusion are its slots.
    pub fn into_graph(mut self, task: Task, configurable: Vec<u32>) -> Result<Graph, GraphError> {
        self.take_graph(task, configurable)
    }

    /// Returns the graph of this module, as [`Self::into_graph`] does, and the descriptions of its configurable nodes.
    pub fn into_described_graph(
        mut self,
        task: Task,
        configurable: Vec<u32>,
    ) -> Result<(Graph, Vec<NodeDescription>), GraphError> {
        let graph = self.take_graph(task, configurable)?;
        let configurable = pace::in_steps(16, graph.configurable());
        let nodes = configurable
            .filter_map(|&node| self.describe(node))
            .collect();
        Ok((graph, nodes))
    }

    fn take_graph(&mut self, task: Task, configurable: Vec<u32>) -> Result<Graph, GraphError> {
        // The program reads the instructions of the module, so it comes before the arrays are
        // taken.
        let program = match task.kind().scope {
            Scope::Program => Some(FusionProgram::new(self)?),
            Scope::Kernel | Scope::Nodes | Scope::EveryNode => None,
        };
        if task.kind().scope == Scope::Kernel {
            self.arrays.operands = self.operand_lists();
        }
        let arrays = std::mem::take(&mut self.arrays);
        match program {
            Some(program) => Graph::of_program(arrays, program),
            None => Graph::new(task, arrays, configurable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_graph_is_the_graph() {
        let limits = Limits::default();
        for (pad, task, configurable) in [
            (Pad::Zero, Task::Tile, vec![]),
            (Pad::MinusOne, Task::Layout, vec![1]),
        ] {
            let mut features = vec![0.0; 2 * FEATURES];
            features[31..37].fill(pad.value());
            let arrays =
                GraphArrays::from_features(vec![63, 63], features, vec![[1, 0]], pad, &limits);
            let graph = Graph::new(task, arrays.unwrap(), configurable).unwrap();
            let message = graph.to_message().unwrap();
            let read = Graph::of_message(&message, task, &limits).unwrap();
            assert_eq!((read.hash(), read), (graph.hash(), graph));
        }
        let columns = vec![0.5, -1.5, 2.0, 3.0];
        let graph = FeatureGraph::new("set".to_owned(), 2, columns, vec![[1, 0]], &limits).unwrap();
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let graph = graph.described(names(["depth", "flops"]), names(["tile", "unroll"]));
        let graph = graph.unwrap().of_instance("matmul".to_owned()).unwrap();
        let graph = Graph::of_features(graph);
        let message = graph.to_message().unwrap();
        assert_eq!(
            Graph::of_message(&message, Task::FeatureSet, &limits),
            Ok(graph)
        );
    }
}
