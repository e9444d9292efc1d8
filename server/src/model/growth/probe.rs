use hlorank_graph::{Element, Scope, Task};
use ort::{
    session::SessionInputs,
    value::{DynTensor, Tensor},
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
        let named = features.named().map(|set| set.config_features().len());
        let config_columns = named.unwrap_or(task.kind().width);
        Self {
            task,
            node_columns: features.node_features(),
            config_columns,
        }
    }

    /// Whether graphs have configurable nodes.
    pub(super) fn has_slots(&self) -> bool {
        self.task.kind().scope == Scope::Nodes
    }

    /// Returns the inputs of `model.onnx`.
    pub(super) fn inputs(&self, sizes: RunSizes) -> ort::Result<SessionInputs<'static, 'static>> {
        let RunSizes { nodes, slots, .. } = sizes;
        let columns = vec![f32::from(VALUE); nodes * self.node_columns];
        let features = Tensor::from_array(([nodes, self.node_columns], columns))?;
        let mut inputs = ort::inputs! { "features" => features, "edges" => edges(sizes)? };
        inputs.push(("config".into(), self.config(sizes)?.into()));
        if self.task.kind().scope != Scope::EveryNode {
            let opcode = Tensor::from_array(([nodes], vec![i64::from(VALUE); nodes]))?;
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
        let RunSizes {
            nodes,
            slots,
            configs,
            ..
        } = sizes;
        let shape = match self.task.kind().scope {
            Scope::Kernel | Scope::Program => vec![configs, self.config_columns],
            Scope::Nodes => vec![configs, slots, self.config_columns],
            Scope::EveryNode => vec![configs, nodes, self.config_columns],
        };
        let count = shape.iter().product();
        Ok(match self.task.kind().element {
            Element::Float32 => {
                Tensor::from_array((shape, vec![f32::from(VALUE); count]))?.upcast()
            }
            Element::Int64 => Tensor::from_array((shape, vec![i64::from(VALUE); count]))?.upcast(),
        })
    }
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
