//! Whole-graph models: the whole graph, or what pruning keeps of it, with some configurations at a time.

use hlorank_graph::{ConfigInput, Scope};
use ort::session::Session;

use super::{
    ModelFacts, WholeGraphSettings,
    growth::MemoryGrowth,
    manifest::MODEL,
    sessions::{ModelFailed, PerWorker, config_value, output, view},
};
use crate::{compute::Worker, runtime::Interrupt};

/// The inputs of `model.onnx` that all configurations of a graph share.
pub struct WholeGraphInput {
    /// Number of nodes.
    pub nodes: usize,
    /// `[nodes]`; empty for a graph of a named feature set.
    pub opcode: Vec<i64>,
    /// `[nodes, columns]`.
    pub features: Vec<f32>,
    /// `[2, edges]`: consumers, then producers.
    pub edges: Vec<i64>,
    /// `[slots]` node numbers in slot order; empty for a kernel.
    pub configurable: Vec<i64>,
}

/// A loaded whole-graph model.
pub struct WholeGraphModel {
    /// What models of every kind have.
    pub facts: ModelFacts,
    /// Its settings.
    pub settings: WholeGraphSettings,
    /// How the memory of a run grows.
    pub growth: MemoryGrowth,
    pub(super) sessions: PerWorker<Session>,
}

impl WholeGraphModel {
    /// Returns an interrupt for runs of [`Self::score`] that take at most `bytes` bytes.
    pub fn interrupt(&self, bytes: usize) -> Result<Interrupt, ModelFailed> {
        self.sessions.interrupt(MODEL, bytes)
    }

    /// Runs the model on some configurations of a graph, and returns their `[configs]` scores. Fails once it is
    /// interrupted.
    pub fn score(
        &self,
        worker: Worker,
        graph: &WholeGraphInput,
        config: &ConfigInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        self.sessions.run(worker, MODEL, interrupt, |session| {
            let nodes = graph.nodes;
            let columns = graph.features.len() / nodes.max(1);
            let mut inputs = ort::inputs! {
                "features" => view([nodes, columns], &graph.features)?,
                "edges" => view([2, graph.edges.len() / 2], &graph.edges)?,
                "config" => config_value(config)?,
            };
            let scope = self.facts.task.kind().scope;
            // In a named feature set, the columns say all that is known of a node.
            if scope != Scope::EveryNode {
                inputs.push(("opcode".into(), view([nodes], &graph.opcode)?));
            }
            // Only layouts are of some of the nodes. Others are of a kernel, or of every node.
            if scope == Scope::Nodes {
                let slots = view([graph.configurable.len()], &graph.configurable)?;
                inputs.push(("configurable".into(), slots));
            }
            output(session, inputs, "score", config.shape[0], interrupt)
        })
    }
}
