use hlorank_graph::{ConfigInput, Scope};
use ort::{session::Session, value::TensorRef};

use crate::{
    compute::Worker,
    model::{
        MemoryGrowth,
        facts::ModelFacts,
        manifest::{MODEL, WholeGraphSettings},
        sessions::{ModelFailed, PerWorker},
        tensor::config_value,
    },
    runtime::Interrupt,
};

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
    facts: ModelFacts,
    settings: WholeGraphSettings,
    sessions: PerWorker<Session>,
    growth: MemoryGrowth,
}

impl WholeGraphModel {
    pub(in crate::model) fn new(
        facts: ModelFacts,
        settings: WholeGraphSettings,
        sessions: PerWorker<Session>,
        growth: MemoryGrowth,
    ) -> Self {
        Self {
            facts,
            settings,
            sessions,
            growth,
        }
    }

    /// What models of every kind have.
    #[must_use]
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &WholeGraphSettings {
        &self.settings
    }

    /// How the memory of a run grows.
    #[must_use]
    pub fn growth(&self) -> &MemoryGrowth {
        &self.growth
    }

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
        let run = |session: &mut Session| self.run(session, graph, config, interrupt);
        self.sessions
            .run(worker, MODEL, config.shape[0], interrupt, run)
    }

    fn run(
        &self,
        session: &mut Session,
        graph: &WholeGraphInput,
        config: &ConfigInput,
        interrupt: &Interrupt,
    ) -> ort::Result<Vec<f32>> {
        let (nodes, slots, scope) = (
            graph.nodes,
            graph.configurable.len(),
            self.facts.task.kind().scope,
        );
        let columns = graph.features.len() / nodes.max(1);
        let features = TensorRef::from_array_view(([nodes, columns], graph.features.as_slice()))?;
        let edges =
            TensorRef::from_array_view(([2, graph.edges.len() / 2], graph.edges.as_slice()))?;
        let config = config_value(config)?;
        let mut inputs =
            ort::inputs! { "features" => features, "edges" => edges, "config" => config };
        if scope != Scope::EveryNode {
            let opcode = TensorRef::from_array_view(([nodes], graph.opcode.as_slice()))?;
            inputs.push(("opcode".into(), opcode.into()));
        }
        if scope == Scope::Nodes {
            let configurable =
                TensorRef::from_array_view(([slots], graph.configurable.as_slice()))?;
            inputs.push(("configurable".into(), configurable.into()));
        }
        let outputs = session.run_with_options(inputs, interrupt.options())?;
        Ok(outputs["score"].try_extract_tensor::<f32>()?.1.to_vec())
    }
}
