//! Checks of an ONNX model that do not run it.

use bytes::Bytes;
use hlorank_proto::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};
use prost::Message as _;

use super::{ArtifactError, interface::Interface};

/// Checks that a serialized model holds all its weights, uses only ONNX's own operators, contains no NaN, and has this
/// interface.
pub(super) fn check(
    file: &'static str,
    bytes: &Bytes,
    interface: &Interface,
) -> Result<(), ArtifactError> {
    let malformed = |detail: String| ArtifactError::Malformed { file, detail };
    let model = ModelProto::decode(bytes.clone()).map_err(|error| malformed(error.to_string()))?;
    let graph = model
        .graph
        .as_ref()
        .ok_or_else(|| malformed("it has no graph".to_owned()))?;
    let checker = Checker {
        file,
        model: &model,
    };
    checker.graph(graph)?;
    for function in &model.functions {
        checker.nodes(&function.node)?;
        checker.attributes(&function.attribute_proto)?;
    }
    interface.check(file, graph)
}

/// Walks through the graphs of a model.
struct Checker<'a> {
    file: &'static str,
    model: &'a ModelProto,
}

/// `TensorProto.DataLocation.EXTERNAL`.
const EXTERNAL: i32 = 1;

/// The bits of the exponents of numbers of 16 bits.
const FLOAT16_EXPONENT: u16 = 0x7c00;
const BFLOAT16_EXPONENT: u16 = 0x7f80;

impl Checker<'_> {
    fn graph(&self, graph: &GraphProto) -> Result<(), ArtifactError> {
        graph
            .initializer
            .iter()
            .try_for_each(|tensor| self.tensor(tensor))?;
        graph
            .sparse_initializer
            .iter()
            .try_for_each(|tensor| self.sparse_tensor(tensor))?;
        self.nodes(&graph.node)
    }

    fn nodes(&self, nodes: &[NodeProto]) -> Result<(), ArtifactError> {
        nodes.iter().try_for_each(|node| {
            self.operator(node)?;
            self.attributes(&node.attribute)
        })
    }

    fn operator(&self, node: &NodeProto) -> Result<(), ArtifactError> {
        let own = ["", "ai.onnx"].contains(&node.domain.as_str());
        let mut functions = self.model.functions.iter();
        // A function of the model is made of operators that are checked themselves.
        if own
            || functions
                .any(|function| (&function.domain, &function.name) == (&node.domain, &node.op_type))
        {
            return Ok(());
        }
        Err(ArtifactError::CustomOperator {
            file: self.file,
            operator: node.op_type.clone(),
            domain: node.domain.clone(),
        })
    }

    fn attributes(&self, attributes: &[AttributeProto]) -> Result<(), ArtifactError> {
        let mut attributes = attributes.iter();
        attributes.try_for_each(|attribute| self.attribute(attribute))
    }

    fn attribute(&self, attribute: &AttributeProto) -> Result<(), ArtifactError> {
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
        bodies.try_for_each(|graph| self.graph(graph))
    }

    fn sparse_tensor(&self, tensor: &SparseTensorProto) -> Result<(), ArtifactError> {
        tensor
            .values
            .iter()
            .chain(&tensor.indices)
            .try_for_each(|tensor| self.tensor(tensor))
    }

    fn tensor(&self, tensor: &TensorProto) -> Result<(), ArtifactError> {
        // Weights in another file may escape the digests of the manifest, and their location may
        // lead out of the folder.
        if tensor.data_location == EXTERNAL || !tensor.external_data.is_empty() {
            return Err(ArtifactError::ExternalData {
                file: self.file,
                tensor: tensor.name.clone(),
                location: location(tensor),
            });
        }
        if holds_nan(tensor) {
            return Err(self.not_a_number(&tensor.name));
        }
        Ok(())
    }

    fn not_a_number(&self, tensor: &str) -> ArtifactError {
        ArtifactError::NotANumber {
            file: self.file,
            tensor: tensor.to_owned(),
        }
    }
}

/// Returns the location of external data; empty if the tensor does not give one.
fn location(tensor: &TensorProto) -> String {
    let mut entries = tensor.external_data.iter();
    let location = entries.find(|entry| entry.key == "location");
    location.map_or_else(String::new, |entry| entry.value.clone())
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
