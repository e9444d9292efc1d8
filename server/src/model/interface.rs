//! The inputs and outputs of the artifact contract.

use hlorank_graph::Task;
use hlorank_proto::onnx::{GraphProto, ValueInfoProto};

use super::ArtifactError;

/// What an ONNX model takes and gives.
pub(super) struct Interface {
    inputs: Vec<Outlet>,
    output: Outlet,
}

/// Name, type and number of dimensions of an input or output.
#[derive(Clone, Copy)]
struct Outlet {
    name: &'static str,
    element: Element,
    rank: usize,
}

/// Types of elements, by their numbers in ONNX's `TensorProto.DataType`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Float32 = 1,
    Int64 = 7,
}

use Element::{Float32, Int64};

/// Of `encoder.onnx`.
pub(super) fn encoder(task: Task) -> Interface {
    Interface {
        inputs: vec![
            outlet("opcode", Int64, 2),
            outlet("features", Float32, 3),
            outlet("operands", Float32, 3),
            outlet("mask", Float32, 2),
            outlet("segment", Int64, 1),
            config(task),
        ],
        output: outlet("embedding", Float32, 2),
    }
}

/// Of `head.onnx`.
pub(super) fn head() -> Interface {
    Interface { inputs: vec![outlet("sum", Float32, 2)], output: outlet("score", Float32, 1) }
}

/// Of `model.onnx`.
pub(super) fn whole_graph(task: Task) -> Interface {
    let mut inputs = vec![
        outlet("opcode", Int64, 1),
        outlet("features", Float32, 2),
        outlet("edges", Int64, 2),
        config(task),
    ];
    if task == Task::Layout {
        inputs.push(outlet("configurable", Int64, 1));
    }
    Interface { inputs, output: outlet("score", Float32, 1) }
}

fn config(task: Task) -> Outlet {
    match task {
        Task::Layout => outlet("config", Int64, 3),
        Task::Tile => outlet("config", Float32, 2),
    }
}

fn outlet(name: &'static str, element: Element, rank: usize) -> Outlet {
    Outlet { name, element, rank }
}

impl Interface {
    /// Checks names, types and ranks of what a graph takes and gives.
    pub(super) fn check(&self, file: &'static str, graph: &GraphProto) -> Result<(), ArtifactError> {
        // Older models list their weights among the inputs.
        let weights: Vec<&str> = graph.initializer.iter().map(|weight| weight.name.as_str()).collect();
        let inputs = graph.input.iter().filter(|input| !weights.contains(&input.name.as_str()));
        check_outlets(file, "inputs", &inputs.collect::<Vec<_>>(), &self.inputs)?;
        check_outlets(file, "outputs", &graph.output.iter().collect::<Vec<_>>(), &[self.output])
    }
}

fn check_outlets(
    file: &'static str,
    what: &'static str,
    found: &[&ValueInfoProto],
    expected: &[Outlet],
) -> Result<(), ArtifactError> {
    let mut found_names: Vec<&str> = found.iter().map(|outlet| outlet.name.as_str()).collect();
    let mut names: Vec<&str> = expected.iter().map(|outlet| outlet.name).collect();
    found_names.sort_unstable();
    names.sort_unstable();
    if found_names != names {
        let (found, expected) = (found_names.join(", "), names.join(", "));
        return Err(ArtifactError::Names { file, what, found, expected });
    }
    expected.iter().try_for_each(|expected| {
        let found = found.iter().find(|found| found.name == expected.name);
        found.map_or(Ok(()), |found| expected.check(file, found))
    })
}

impl Outlet {
    fn check(self, file: &'static str, found: &ValueInfoProto) -> Result<(), ArtifactError> {
        let Self { name, element, rank } = self;
        let tensor = found.r#type.as_ref().and_then(|of| of.tensor_type.as_ref());
        let found_element = tensor.map_or(0, |tensor| tensor.elem_type);
        if found_element != element as i32 {
            let (found, expected) = (element_name(found_element), element_name(element as i32));
            return Err(ArtifactError::Type { file, name, found: found.to_owned(), expected });
        }
        let found = tensor.and_then(|tensor| tensor.shape.as_ref()).map(|shape| shape.dim.len());
        if found == Some(rank) {
            return Ok(());
        }
        let found = found.map_or("any number of".to_owned(), |rank| rank.to_string());
        Err(ArtifactError::Rank { file, name, found, expected: rank })
    }
}

/// ONNX's name of an element type.
fn element_name(element: i32) -> &'static str {
    const NAMES: [&str; 17] = [
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
    usize::try_from(element).ok().and_then(|element| NAMES.get(element)).unwrap_or(&"another type")
}
