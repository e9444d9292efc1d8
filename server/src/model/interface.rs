//! The inputs and outputs of the artifact contract.

use std::slice;

use hlorank_graph::{self as graph, Scope, Task};
use hlorank_proto::onnx::{GraphProto, ValueInfoProto};

use super::{ArtifactError, ModelFeatures};

/// The inputs and the outputs of an ONNX model.
pub(super) struct Interface {
    inputs: Vec<Outlet>,
    /// `None` for a model whose outputs another model of the artifact takes as further inputs.
    output: Option<Outlet>,
    /// Whether the model has further inputs of 32-bit floating point.
    has_further_inputs: bool,
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

/// The inputs for the configurations of a task if the encoder has two parts: tiles as they are; distinct entries of layouts,
/// and the number of the entry of each node.
pub(super) fn row_outlets(task: Task) -> Vec<Outlet> {
    let kind = task.kind();
    match kind.scope {
        Scope::Nodes => vec![
            outlet("entries", Element::Int64, &[None, Some(kind.width)]),
            outlet("config", Element::Int64, &[None, None]),
        ],
        Scope::Kernel | Scope::Program | Scope::EveryNode => {
            vec![outlet(
                "config",
                Element::Float32,
                &[None, Some(kind.width)],
            )]
        }
    }
}

/// The input `config` for configurations of a task; `None` if models of the task take none.
pub(super) fn config_outlet(task: Task, features: &ModelFeatures) -> Option<Outlet> {
    let kind = task.kind();
    let element = match kind.element {
        graph::Element::Float32 => Element::Float32,
        graph::Element::Int64 => Element::Int64,
    };
    let shape = match kind.scope {
        Scope::Kernel => vec![None, Some(kind.width)],
        Scope::Nodes => vec![None, None, Some(kind.width)],
        Scope::Program => return None,
        Scope::EveryNode => vec![None, None, features.config_features()],
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

    /// A model whose outputs may have any names and shapes.
    pub(super) fn with_any_outputs(inputs: Vec<Outlet>) -> Self {
        Self {
            inputs,
            output: None,
            has_further_inputs: false,
        }
    }

    /// Allows inputs of any names and shapes beside those of the interface.
    pub(super) fn and_further_inputs(self) -> Self {
        Self {
            has_further_inputs: true,
            ..self
        }
    }

    /// Checks the names, types and shapes of the inputs and outputs of a graph.
    pub(super) fn check(
        &self,
        file: &'static str,
        graph: &GraphProto,
    ) -> Result<(), ArtifactError> {
        check_outlets(file, "inputs", &self.own_inputs(graph), &self.inputs)?;
        let Some(output) = &self.output else {
            return Ok(());
        };
        let outputs: Vec<&ValueInfoProto> = graph.output.iter().collect();
        check_outlets(file, "outputs", &outputs, slice::from_ref(output))
    }

    /// Returns the inputs of a graph that the interface decides on.
    fn own_inputs<'a>(&self, graph: &'a GraphProto) -> Vec<&'a ValueInfoProto> {
        // Models of IR versions before 4 list their weights among the inputs.
        let is_weight = |name: &str| graph.initializer.iter().any(|weight| weight.name == name);
        let is_expected = |name: &str| self.inputs.iter().any(|expected| expected.name == name);
        let is_own = |input: &&ValueInfoProto| {
            !is_weight(&input.name) && (!self.has_further_inputs || is_expected(&input.name))
        };
        graph.input.iter().filter(is_own).collect()
    }
}

/// Refuses inputs or outputs with other names than the expected ones. Their order does not matter.
pub(super) fn check_names<'a>(
    file: &'static str,
    what: &'static str,
    found: impl Iterator<Item = &'a str>,
    expected: impl Iterator<Item = &'a str>,
) -> Result<(), ArtifactError> {
    let found = sorted(found);
    let expected = sorted(expected);
    if found == expected {
        return Ok(());
    }
    Err(ArtifactError::Names {
        file,
        what,
        found: found.join(", "),
        expected: expected.join(", "),
    })
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}

fn check_outlets(
    file: &'static str,
    what: &'static str,
    found: &[&ValueInfoProto],
    expected: &[Outlet],
) -> Result<(), ArtifactError> {
    let names = expected.iter().map(|outlet| outlet.name);
    let found_names = found.iter().map(|outlet| outlet.name.as_str());
    check_names(file, what, found_names, names)?;
    expected.iter().try_for_each(|expected| {
        let found = found.iter().find(|found| found.name == expected.name);
        found.map_or(Ok(()), |found| expected.check(file, found))
    })
}

impl Outlet {
    fn check(&self, file: &'static str, found: &ValueInfoProto) -> Result<(), ArtifactError> {
        let tensor = found.r#type.as_ref().and_then(|of| of.tensor_type.as_ref());
        self.check_element(file, tensor.map_or(0, |tensor| tensor.elem_type))?;
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
        let sizes = shape.map(|shape| shape.dim.iter().map(|found| found.dim_value).collect());
        self.check_sizes(file, sizes)
    }

    fn check_element(&self, file: &'static str, found: i32) -> Result<(), ArtifactError> {
        let expected = self.element as i32;
        if found == expected {
            return Ok(());
        }
        Err(ArtifactError::Type {
            file,
            name: self.name,
            found: element_name(found).to_owned(),
            expected: element_name(expected),
        })
    }

    /// Checks the sizes of the dimensions; `None` if the file does not say how many there are.
    fn check_sizes(
        &self,
        file: &'static str,
        sizes: Option<Vec<i64>>,
    ) -> Result<(), ArtifactError> {
        let rank = sizes.as_ref().map(Vec::len);
        if rank != Some(self.shape.len()) {
            return Err(self.other_rank(file, rank));
        }
        let mut sizes = sizes.into_iter().flatten().enumerate();
        sizes.try_for_each(|(dimension, found)| self.check_size(file, dimension, found))
    }

    fn other_rank(&self, file: &'static str, found: Option<usize>) -> ArtifactError {
        ArtifactError::Rank {
            file,
            name: self.name,
            found: found.map_or("any number of".to_owned(), |found| found.to_string()),
            expected: self.shape.len(),
        }
    }

    fn check_size(
        &self,
        file: &'static str,
        dimension: usize,
        found: i64,
    ) -> Result<(), ArtifactError> {
        let expected = self.shape[dimension];
        // A size that is not fixed is 0 in the file, and fits any. One that is fixed does not fit
        // where the server gives different sizes from run to run.
        if found == 0 || usize::try_from(found).ok() == expected {
            return Ok(());
        }
        Err(ArtifactError::Shape {
            file,
            name: self.name,
            dimension,
            found,
            expected: expected.map_or("any size".to_owned(), |size| size.to_string()),
        })
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
    usize::try_from(element)
        .ok()
        .and_then(|element| NAMES.get(element))
        .unwrap_or(&"another type")
}
