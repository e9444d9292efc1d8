use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
};

use bytes::Bytes;
use hlorank_graph::{Element, Scope, Task};
use hlorank_proto::onnx::{FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use ort::{
    session::{Session, SessionInputs},
    value::{PrimitiveTensorElementType, Tensor, ValueType},
};
use prost::Message as _;

use crate::{
    model::ModelFeatures,
    runtime::{Runtime, RuntimeError},
};

/// The sizes on which the memory of a run depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSizes {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Number of configurable nodes; 0 for a kernel and for a graph of a feature set.
    pub slots: usize,
    /// Number of configurations.
    pub configs: usize,
}

/// A model whose every tensor is an output.
pub(super) struct TracedModel {
    session: Session,
    steps: Vec<Step>,
    task: Task,
    node_columns: usize,
    config_columns: usize,
}

/// One operator.
struct Step {
    /// The tensors that it computes.
    computed: Vec<String>,
    /// The tensors that no later operator uses.
    freed: Vec<String>,
    /// Number of operators in its bodies, such as that of a loop. Their tensors are no outputs, and each counts as the largest
    /// tensor.
    hidden: usize,
}

impl TracedModel {
    pub(super) fn new(
        model: &Bytes,
        runtime: &Runtime,
        task: Task,
        features: &ModelFeatures,
    ) -> Result<Self, RuntimeError> {
        let malformed = |detail: String| RuntimeError::Session(detail);
        let decoded =
            ModelProto::decode(model.clone()).map_err(|error| malformed(error.to_string()))?;
        let graph = decoded.graph.as_ref();
        let graph = graph.ok_or_else(|| malformed("it has no graph".to_owned()))?;
        Ok(Self {
            session: runtime.unoptimized_session(&with_every_output(model, graph))?,
            steps: steps(&decoded, graph),
            task,
            node_columns: features.node_features(),
            config_columns: features.config_width(task),
        })
    }

    /// Returns the bytes of tensors that are alive at each operator, for inputs of some sizes.
    pub(super) fn live(&mut self, sizes: RunSizes) -> ort::Result<Vec<f64>> {
        let inputs = self.inputs(sizes)?;
        let outputs = self.session.run(inputs)?;
        let mut bytes: HashMap<&str, usize> = HashMap::new();
        for (name, value) in &outputs {
            let ValueType::Tensor { ty, shape, .. } = value.dtype() else {
                return Err(ort::Error::new(format!("`{name}` is no tensor")));
            };
            let size = ty.byte_size(shape.num_elements());
            let size = size
                .ok_or_else(|| ort::Error::new(format!("`{name}` has elements of unknown size")))?;
            bytes.insert(name, size);
        }
        let largest = bytes.values().copied().max().unwrap_or_default();
        let sum = |names: &[String]| {
            let known = names.iter().filter_map(|name| bytes.get(name.as_str()));
            known.sum::<usize>()
        };
        let mut alive = 0;
        let at_steps = self.steps.iter().map(|step| {
            // While an operator runs, both its inputs and its outputs are alive.
            alive += sum(&step.computed);
            let most = alive + step.hidden * largest;
            alive -= sum(&step.freed);
            most
        });
        #[expect(clippy::cast_precision_loss, reason = "sizes of tiny tensors")]
        let at_steps = at_steps.map(|bytes| bytes as f64);
        Ok(at_steps.collect())
    }

    /// Returns inputs of `model.onnx` of some sizes. Tasks other than layouts have no slots.
    fn inputs(&self, sizes: RunSizes) -> ort::Result<SessionInputs<'static, 'static>> {
        let RunSizes {
            nodes,
            edges,
            slots,
            configs,
        } = sizes;
        let kind = self.task.kind();
        let shape = match kind.scope {
            Scope::Kernel | Scope::Program => vec![configs, self.config_columns],
            Scope::Nodes => vec![configs, slots, self.config_columns],
            Scope::EveryNode => vec![configs, nodes, self.config_columns],
        };
        let config = match kind.element {
            Element::Float32 => filled(shape, 1.0_f32)?.upcast(),
            Element::Int64 => filled(shape, 1_i64)?.upcast(),
        };
        // No two edges are equal, as an operator may leave out repetitions. The distance of the ends
        // grows by one when every node has been a consumer.
        let consumers = (0..edges).map(|edge| edge % nodes);
        let producers = (0..edges).map(|edge| (edge / nodes + edge + 1) % nodes);
        let index = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let ends: Vec<i64> = consumers.chain(producers).map(index).collect();
        let mut inputs = ort::inputs! {
            "features" => filled(vec![nodes, self.node_columns], 1.0_f32)?,
            "edges" => Tensor::from_array(([2, edges], ends))?,
            "config" => config,
        };
        if kind.scope != Scope::EveryNode {
            let opcode = filled(vec![nodes], 1_i64)?;
            inputs.push(("opcode".into(), opcode.into()));
        }
        if kind.scope == Scope::Nodes {
            let numbers: Vec<i64> = (0..slots).map(index).collect();
            let configurable = Tensor::from_array(([slots], numbers))?;
            inputs.push(("configurable".into(), configurable.into()));
        }
        Ok(inputs.into())
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

/// Adds every tensor to the outputs of a serialized model. Protobuf merges an appended message with the one before it.
fn with_every_output(model: &Bytes, graph: &GraphProto) -> Vec<u8> {
    let outputs: HashSet<&str> = graph
        .output
        .iter()
        .map(|output| output.name.as_str())
        .collect();
    let computed = graph.node.iter().flat_map(|node| &node.output);
    let further = computed.filter(|name| !name.is_empty() && !outputs.contains(name.as_str()));
    let output = further
        .map(|name| ValueInfoProto {
            name: name.clone(),
            r#type: None,
        })
        .collect();
    let more = ModelProto {
        graph: Some(GraphProto {
            output,
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    [model.as_ref(), &more.encode_to_vec()].concat()
}

fn steps(model: &ModelProto, graph: &GraphProto) -> Vec<Step> {
    let mut freed: HashMap<usize, Vec<String>> = HashMap::new();
    for (name, step) in last_uses(graph) {
        freed.entry(step).or_default().push(name.to_owned());
    }
    let step = |(number, node): (usize, &NodeProto)| Step {
        computed: node.output.clone(),
        freed: freed.remove(&number).unwrap_or_default(),
        hidden: hidden(model, node),
    };
    graph.node.iter().enumerate().map(step).collect()
}

/// Returns the last operator that uses each computed tensor, except the outputs, which stay alive.
fn last_uses(graph: &GraphProto) -> HashMap<&str, usize> {
    let mut last_uses: HashMap<&str, usize> = HashMap::new();
    for (step, node) in graph.node.iter().enumerate() {
        // A tensor that nothing uses is free after the operator that computes it.
        last_uses.extend(node.output.iter().map(|name| (name.as_str(), step)));
        let mut used = Vec::new();
        add_used(node, &mut used);
        for name in used {
            // Inputs and weights have no entry: a run does not allocate them.
            last_uses.entry(name).and_modify(|last| *last = step);
        }
    }
    for output in &graph.output {
        last_uses.remove(output.name.as_str());
    }
    last_uses
}

/// Adds the names of the values that an operator uses, in its bodies too.
fn add_used<'a>(node: &'a NodeProto, used: &mut Vec<&'a str>) {
    used.extend(node.input.iter().map(String::as_str));
    for body in bodies(node) {
        used.extend(body.output.iter().map(|output| output.name.as_str()));
        body.node.iter().for_each(|node| add_used(node, used));
    }
}

/// Counts the operators in the bodies of an operator, and in the function that it names.
fn hidden(model: &ModelProto, node: &NodeProto) -> usize {
    let is_named = |function: &&FunctionProto| {
        (&function.domain, &function.name) == (&node.domain, &node.op_type)
    };
    let function = model
        .functions
        .iter()
        .find(is_named)
        .map_or(0, |function| function.node.len());
    let in_body = |body: &GraphProto| {
        body.node
            .iter()
            .map(|node| 1 + hidden(model, node))
            .sum::<usize>()
    };
    function + bodies(node).map(in_body).sum::<usize>()
}

fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute
        .iter()
        .flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}
