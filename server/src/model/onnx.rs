//! Checks of an ONNX model that do not run it: it holds all its weights, uses only ONNX's own operators, contains no NaN, and has
//! the inputs and outputs of the artifact contract.

use std::slice;

use bytes::Bytes;
use hlorank_graph::{self as graph, Scope, Task};
use hlorank_proto::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
    ValueInfoProto,
};
use prost::Message as _;

use super::{ModelFeatures, Rejection};

/// The inputs and the outputs of an ONNX model.
pub(super) struct Interface {
    pub(super) inputs: Vec<Outlet>,
    /// `None` for a model whose outputs another model of the artifact takes as further inputs.
    pub(super) output: Option<Outlet>,
    /// Whether the model has further inputs of 32-bit floating point, of any names and shapes.
    pub(super) has_further_inputs: bool,
}

/// Name, type and shape of an input or output.
pub(super) struct Outlet {
    name: &'static str,
    element: Element,
    /// `None` for a size that may differ from run to run.
    shape: Vec<Option<usize>>,
}

/// Element types, with their numbers in ONNX's `TensorProto.DataType`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Float32 = 1,
    Int64 = 7,
}

/// `TensorProto.DataLocation.EXTERNAL`.
const EXTERNAL: i32 = 1;

/// Operators whose work follows from the sizes of their inputs. A loop repeats as often as a value says, and some others, such as
/// `NonMaxSuppression` or `Range`, compute as much as a value says.
const BOUNDED_OPERATORS: [&str; 36] = [
    "Abs",
    "Add",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "Div",
    "Erf",
    "Exp",
    "Flatten",
    "Gather",
    "Gemm",
    "Identity",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "MatMul",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Sigmoid",
    "Sign",
    "Slice",
    "Softplus",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
];

/// The bits of the exponents of numbers of 16 bits.
const FLOAT16_EXPONENT: u16 = 0x7c00;
const BFLOAT16_EXPONENT: u16 = 0x7f80;

/// ONNX's names of element types, by number.
const ELEMENT_NAMES: [&str; 17] = [
    "no tensor",
    "float32",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "float64",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
];

/// Checks a serialized model, which must have this interface.
pub(super) fn check(
    file: &'static str,
    bytes: &Bytes,
    interface: &Interface,
) -> Result<(), Rejection> {
    let malformed = |detail: &str| {
        Rejection::new(
            "ONNX_MALFORMED",
            format!("{file} is no ONNX model: {detail}"),
        )
    };
    let model = ModelProto::decode(bytes.clone()).map_err(|error| malformed(&error.to_string()))?;
    let graph = model.graph.as_ref();
    let graph = graph.ok_or_else(|| malformed("it has no graph"))?;
    let checker = Checker {
        file,
        model: &model,
    };
    checker.graph(graph)?;
    for function in &model.functions {
        checker.nodes(&function.node)?;
        checker.attributes(&function.attribute_proto)?;
    }
    // Models of IR versions before 4 list their weights among the inputs.
    let is_weight = |name: &str| graph.initializer.iter().any(|weight| weight.name == name);
    let is_expected = |name: &str| (interface.inputs.iter()).any(|expected| expected.name == name);
    let is_own = |input: &&ValueInfoProto| {
        !is_weight(&input.name) && (!interface.has_further_inputs || is_expected(&input.name))
    };
    let inputs: Vec<&ValueInfoProto> = graph.input.iter().filter(is_own).collect();
    check_outlets(file, "inputs", &inputs, &interface.inputs)?;
    match &interface.output {
        None => Ok(()),
        Some(output) => {
            let outputs: Vec<&ValueInfoProto> = graph.output.iter().collect();
            check_outlets(file, "outputs", &outputs, slice::from_ref(output))
        }
    }
}

/// Returns whether the work of every operator of a checked model follows from the sizes of its inputs, so that no run hangs. Golden
/// cases have shown how long that takes.
pub(super) fn is_bounded(model: &Bytes) -> bool {
    ModelProto::decode(model.clone()).is_ok_and(|model| {
        let mut nodes = model.graph.iter().flat_map(|graph| &graph.node);
        model.functions.is_empty()
            && nodes.all(|node| BOUNDED_OPERATORS.contains(&node.op_type.as_str()))
    })
}

/// Walks through the graphs of a model.
struct Checker<'a> {
    file: &'static str,
    model: &'a ModelProto,
}

impl Checker<'_> {
    fn graph(&self, graph: &GraphProto) -> Result<(), Rejection> {
        let mut weights = graph.initializer.iter();
        weights.try_for_each(|tensor| self.tensor(tensor))?;
        let mut sparse = graph.sparse_initializer.iter();
        sparse.try_for_each(|tensor| self.sparse_tensor(tensor))?;
        self.nodes(&graph.node)
    }

    fn nodes(&self, nodes: &[NodeProto]) -> Result<(), Rejection> {
        for NodeProto {
            op_type, domain, ..
        } in nodes
        {
            let mut functions = self.model.functions.iter();
            // A function of the model is made of operators that are checked themselves.
            let is_known = ["", "ai.onnx"].contains(&domain.as_str())
                || functions
                    .any(|function| (&function.domain, &function.name) == (domain, op_type));
            if !is_known {
                return Err(Rejection::new(
                    "CUSTOM_OPERATOR",
                    format!(
                        "{} uses operator `{op_type}` of domain `{domain}`; only ONNX's own operators are run",
                        self.file
                    ),
                ));
            }
        }
        let mut nodes = nodes.iter();
        nodes.try_for_each(|node| self.attributes(&node.attribute))
    }

    fn attributes(&self, attributes: &[AttributeProto]) -> Result<(), Rejection> {
        for attribute in attributes {
            if attribute.f.is_nan() || attribute.floats.iter().any(|number| number.is_nan()) {
                return Err(self.not_a_number(&attribute.name));
            }
            let mut tensors = attribute.t.iter().chain(&attribute.tensors);
            tensors.try_for_each(|tensor| self.tensor(tensor))?;
            let sparse = attribute.sparse_tensor.iter();
            let mut sparse = sparse.chain(&attribute.sparse_tensors);
            sparse.try_for_each(|tensor| self.sparse_tensor(tensor))?;
            // The bodies of loops and branches are graphs in attributes.
            let mut bodies = attribute.g.iter().chain(&attribute.graphs);
            bodies.try_for_each(|graph| self.graph(graph))?;
        }
        Ok(())
    }

    fn sparse_tensor(&self, tensor: &SparseTensorProto) -> Result<(), Rejection> {
        let mut parts = tensor.values.iter().chain(&tensor.indices);
        parts.try_for_each(|tensor| self.tensor(tensor))
    }

    fn tensor(&self, tensor: &TensorProto) -> Result<(), Rejection> {
        // Weights in another file may escape the digests of the manifest, and their location may
        // lead out of the folder.
        if tensor.data_location == EXTERNAL || !tensor.external_data.is_empty() {
            let mut entries = tensor.external_data.iter();
            let location = entries.find(|entry| entry.key == "location");
            let location = location.map_or("", |entry| entry.value.as_str());
            return Err(Rejection::new(
                "EXTERNAL_DATA",
                format!(
                    "{}: tensor `{}` is kept in another file, `{location}`; export the model as one file",
                    self.file, tensor.name
                ),
            ));
        }
        if holds_nan(tensor) {
            return Err(self.not_a_number(&tensor.name));
        }
        Ok(())
    }

    fn not_a_number(&self, tensor: &str) -> Rejection {
        let message = format!("{}: tensor `{tensor}` holds NaN", self.file);
        Rejection::new("WEIGHT_NOT_A_NUMBER", message)
    }
}

/// Returns whether an element of a floating-point tensor is NaN.
fn holds_nan(tensor: &TensorProto) -> bool {
    // The numbers are those of FLOAT, FLOAT16, DOUBLE and BFLOAT16 in `TensorProto.DataType`. An
    // exporter chooses whether the elements are raw bytes or in the field of their type.
    match tensor.data_type {
        1 => {
            is_any_raw(tensor, |bits| f32::from_le_bytes(bits).is_nan())
                || tensor.float_data.iter().any(|number| number.is_nan())
        }
        10 => holds_short_nan(tensor, FLOAT16_EXPONENT),
        11 => {
            is_any_raw(tensor, |bits| f64::from_le_bytes(bits).is_nan())
                || tensor.double_data.iter().any(|number| number.is_nan())
        }
        16 => holds_short_nan(tensor, BFLOAT16_EXPONENT),
        _ => false,
    }
}

/// Returns whether an element of 16 bits is NaN, given the bits of the exponent.
fn holds_short_nan(tensor: &TensorProto, exponent: u16) -> bool {
    // The exponent lies above the fraction. Without the sign, a number above it has every bit of
    // the exponent and one of the fraction, which makes it NaN.
    let mut short_data = tensor.int32_data.iter();
    is_any_raw(tensor, |bits| u16::from_le_bytes(bits) & 0x7fff > exponent)
        || short_data.any(|bits| bits & 0x7fff > exponent.into())
}

fn is_any_raw<const N: usize>(tensor: &TensorProto, is_nan: impl Fn([u8; N]) -> bool) -> bool {
    let (numbers, _) = tensor.raw_data.as_chunks::<N>();
    numbers.iter().any(|bits| is_nan(*bits))
}

/// The input `config` for configurations of a task; `None` if models of the task take none.
pub(super) fn config_outlet(task: Task, features: &ModelFeatures) -> Option<Outlet> {
    let kind = task.kind();
    let element = match kind.element {
        graph::Element::Float32 => Element::Float32,
        graph::Element::Int64 => Element::Int64,
    };
    let width = Some(features.config_width(task));
    let shape = match kind.scope {
        Scope::Kernel => vec![None, width],
        Scope::Nodes | Scope::EveryNode => vec![None, None, width],
        Scope::Program => return None,
    };
    Some(outlet("config", element, &shape))
}

/// An input or output; `None` in its shape stands for any size.
pub(super) fn outlet(name: &'static str, element: Element, shape: &[Option<usize>]) -> Outlet {
    Outlet {
        name,
        element,
        shape: shape.to_vec(),
    }
}

impl Interface {
    pub(super) fn new(inputs: Vec<Outlet>, output: Outlet) -> Self {
        Self {
            inputs,
            output: Some(output),
            has_further_inputs: false,
        }
    }
}

/// Refuses inputs or outputs with other names than the expected ones. Their order does not matter.
pub(super) fn check_names<'a>(
    file: &'static str,
    what: &'static str,
    found: impl Iterator<Item = &'a str>,
    expected: impl Iterator<Item = &'a str>,
) -> Result<(), Rejection> {
    let mut found: Vec<&str> = found.collect();
    let mut expected: Vec<&str> = expected.collect();
    found.sort_unstable();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (found.join(", "), expected.join(", "));
    let message = format!("{file} has {what} {found}, expected {expected}");
    Err(Rejection::new("INTERFACE_NAMES", message))
}

fn check_outlets(
    file: &'static str,
    what: &'static str,
    found: &[&ValueInfoProto],
    expected: &[Outlet],
) -> Result<(), Rejection> {
    let names = expected.iter().map(|outlet| outlet.name);
    check_names(
        file,
        what,
        found.iter().map(|outlet| outlet.name.as_str()),
        names,
    )?;
    expected.iter().try_for_each(|expected| {
        let found = found.iter().find(|found| found.name == expected.name);
        found.map_or(Ok(()), |found| expected.check(file, found))
    })
}

impl Outlet {
    fn check(&self, file: &'static str, found: &ValueInfoProto) -> Result<(), Rejection> {
        let name = self.name;
        let tensor = found.r#type.as_ref().and_then(|of| of.tensor_type.as_ref());
        let element = tensor.map_or(0, |tensor| tensor.elem_type);
        if element != self.element as i32 {
            let name_of = |element| {
                let number = usize::try_from(element).ok();
                let name = number.and_then(|number: usize| ELEMENT_NAMES.get(number));
                name.copied().unwrap_or("another type")
            };
            let [found, expected] = [element, self.element as i32].map(name_of);
            let message = format!("{file}: `{name}` is {found}, expected {expected}");
            return Err(Rejection::new("INTERFACE_TYPE", message));
        }
        // A file need not say how many dimensions there are.
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
        let rank = shape.map(|shape| shape.dim.len());
        if rank != Some(self.shape.len()) {
            let found = rank.map_or("any number of".to_owned(), |found| found.to_string());
            let expected = self.shape.len();
            let message = format!("{file}: `{name}` has {found} dimensions, expected {expected}");
            return Err(Rejection::new("INTERFACE_RANK", message));
        }
        let sizes = shape.iter().flat_map(|shape| &shape.dim);
        for (dimension, (found, expected)) in sizes.zip(&self.shape).enumerate() {
            let found = found.dim_value;
            // A size that is not fixed is 0 in the file, and fits any. One that is fixed does not
            // fit where the server gives different sizes from run to run.
            if found != 0 && usize::try_from(found).ok() != *expected {
                let expected = expected.map_or("any size".to_owned(), |size| size.to_string());
                let message = format!(
                    "{file}: dimension {dimension} of `{name}` is {found}, expected {expected}"
                );
                return Err(Rejection::new("INTERFACE_SHAPE", message));
            }
        }
        Ok(())
    }
}
