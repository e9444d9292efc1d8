use std::fmt::Debug;

use hlorank_graph::{Element, Scope, Task};
use ort::{
    session::SessionInputs,
    value::{DynTensor, PrimitiveTensorElementType, Tensor},
};

use super::RunSizes;
use crate::model::ModelFeatures;

/// Makes inputs of any sizes.
pub(super) struct Probe {
    task: Task,
    node_columns: usize,
    config_columns: usize,
}

/// A value that every column may have, and every index except that of a node.
const VALUE: u8 = 1;

impl Probe {
    pub(super) fn new(task: Task, features: &ModelFeatures) -> Self {
        Self {
            task,
            node_columns: features.node_features(),
            config_columns: features.config_features().unwrap_or(task.kind().width),
        }
    }

    /// Whether graphs have configurable nodes.
    pub(super) fn has_slots(&self) -> bool {
        self.task.kind().scope == Scope::Nodes
    }

    /// Returns the inputs of `model.onnx`.
    pub(super) fn inputs(&self, sizes: RunSizes) -> ort::Result<SessionInputs<'static, 'static>> {
        let RunSizes { nodes, slots, .. } = sizes;
        let features = filled(vec![nodes, self.node_columns], f32::from(VALUE))?;
        let config = self.config(sizes)?;
        let mut inputs =
            ort::inputs! { "features" => features, "edges" => edges(sizes)?, "config" => config };
        if self.task.kind().scope != Scope::EveryNode {
            let opcode = filled(vec![nodes], i64::from(VALUE))?;
            inputs.push(("opcode".into(), opcode.into()));
        }
        if self.has_slots() {
            let numbers: Vec<i64> = (0..slots).map(index).collect();
            let configurable = Tensor::from_array(([slots], numbers))?;
            inputs.push(("configurable".into(), configurable.into()));
        }
        Ok(inputs.into())
    }

    fn config(&self, sizes: RunSizes) -> ort::Result<DynTensor> {
        let shape = self.config_shape(sizes);
        Ok(match self.task.kind().element {
            Element::Float32 => filled(shape, f32::from(VALUE))?.upcast(),
            Element::Int64 => filled(shape, i64::from(VALUE))?.upcast(),
        })
    }

    fn config_shape(&self, sizes: RunSizes) -> Vec<usize> {
        let columns = self.config_columns;
        match self.task.kind().scope {
            Scope::Kernel | Scope::Program => vec![sizes.configs, columns],
            Scope::Nodes => vec![sizes.configs, sizes.slots, columns],
            Scope::EveryNode => vec![sizes.configs, sizes.nodes, columns],
        }
    }
}

/// Returns a tensor whose elements are all equal.
fn filled<T>(shape: Vec<usize>, value: T) -> ort::Result<Tensor<T>>
where
    T: PrimitiveTensorElementType + Debug + Clone + 'static,
{
    let count = shape.iter().product();
    Tensor::from_array((shape, vec![value; count]))
}

/// Returns edges, no two of which are equal, as an operator may leave out repetitions.
fn edges(sizes: RunSizes) -> ort::Result<Tensor<i64>> {
    let RunSizes { nodes, edges, .. } = sizes;
    let consumers = (0..edges).map(|edge| edge % nodes);
    // The distance of the ends grows by one when every node has been a consumer.
    let producers = (0..edges).map(|edge| (edge / nodes + edge + 1) % nodes);
    let ends: Vec<i64> = consumers.chain(producers).map(index).collect();
    Tensor::from_array(([2, edges], ends))
}

fn index(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
