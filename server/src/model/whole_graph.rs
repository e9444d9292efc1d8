//! The session of a whole-graph model.

use std::sync::atomic::{AtomicBool, Ordering};

use hlorank_graph::{ConfigInput, FEATURES, Scope, Task};
use ort::{
    session::{RunOptions, Session},
    value::TensorRef,
};

use super::tensor::config_value;

/// The inputs of `model.onnx` that all configurations of a graph share.
pub struct WholeGraphInput {
    /// `[nodes]`.
    pub opcode: Vec<i64>,
    /// `[nodes, 140]`.
    pub features: Vec<f32>,
    /// `[2, edges]`: consumers, then producers.
    pub edges: Vec<i64>,
    /// `[slots]` node numbers in slot order; empty for a kernel.
    pub configurable: Vec<i64>,
}

/// Stops runs from another thread: those in progress fail between two operators, and those to come at once.
pub struct Interrupt {
    options: RunOptions,
    stopped: AtomicBool,
}

impl Interrupt {
    pub(super) fn new() -> ort::Result<Self> {
        Ok(Self { options: RunOptions::new()?, stopped: AtomicBool::new(false) })
    }

    /// Stops every run that was given this.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Err(error) = self.options.terminate() {
            tracing::warn!(%error, "a run goes on although nobody waits for it");
        }
    }

    /// Whether runs fail because they were stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// A session of the one model.
pub(super) struct WholeGraphSession {
    session: Session,
    task: Task,
}

impl WholeGraphSession {
    /// Of a model whose interface was checked.
    pub(super) fn new(session: Session, task: Task) -> Self {
        Self { session, task }
    }

    /// Runs the model on `configs` configurations, until it is interrupted: `[configs]` scores.
    pub(super) fn score(
        &mut self,
        graph: &WholeGraphInput,
        config: &ConfigInput,
        interrupt: &Interrupt,
    ) -> ort::Result<Vec<f32>> {
        let (nodes, slots) = (graph.opcode.len(), graph.configurable.len());
        let opcode = TensorRef::from_array_view(([nodes], graph.opcode.as_slice()))?;
        let features = TensorRef::from_array_view(([nodes, FEATURES], graph.features.as_slice()))?;
        let edges = TensorRef::from_array_view(([2, graph.edges.len() / 2], graph.edges.as_slice()))?;
        let config = config_value(config)?;
        let mut inputs =
            ort::inputs! { "opcode" => opcode, "features" => features, "edges" => edges, "config" => config };
        if self.task.kind().scope == Scope::Nodes {
            let configurable = TensorRef::from_array_view(([slots], graph.configurable.as_slice()))?;
            inputs.push(("configurable".into(), configurable.into()));
        }
        let outputs = self.session.run_with_options(inputs, &interrupt.options)?;
        Ok(outputs["score"].try_extract_tensor::<f32>()?.1.to_vec())
    }
}
