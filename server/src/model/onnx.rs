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
        function
            .attribute_proto
            .iter()
            .try_for_each(|attribute| checker.attribute(attribute))?;
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
            node.attribute
                .iter()
                .try_for_each(|attribute| self.attribute(attribute))
        })
    }

    fn operator(&self, node: &NodeProto) -> Result<(), ArtifactError> {
        let own = ["", "ai.onnx"].contains(&node.domain.as_str());
        let mut functions = self.model.functions.iter();
        if own
            || functions
                .any(|function| (&function.domain, &function.name) == (&node.domain, &node.op_type))
        {
            return Ok(());
        }
        let (operator, domain) = (node.op_type.clone(), node.domain.clone());
        Err(ArtifactError::CustomOperator {
            file: self.file,
            operator,
            domain,
        })
    }

    fn attribute(&self, attribute: &AttributeProto) -> Result<(), ArtifactError> {
        if attribute.f.is_nan() || attribute.floats.iter().any(|number| number.is_nan()) {
            return Err(ArtifactError::NotANumber {
                file: self.file,
                tensor: attribute.name.clone(),
            });
        }
        attribute
            .t
            .iter()
            .chain(&attribute.tensors)
            .try_for_each(|tensor| self.tensor(tensor))?;
        let mut sparse = attribute
            .sparse_tensor
            .iter()
            .chain(&attribute.sparse_tensors);
        sparse.try_for_each(|tensor| self.sparse_tensor(tensor))?;
        attribute
            .g
            .iter()
            .chain(&attribute.graphs)
            .try_for_each(|graph| self.graph(graph))
    }

    fn sparse_tensor(&self, tensor: &SparseTensorProto) -> Result<(), ArtifactError> {
        tensor
            .values
            .iter()
            .chain(&tensor.indices)
            .try_for_each(|tensor| self.tensor(tensor))
    }

    fn tensor(&self, tensor: &TensorProto) -> Result<(), ArtifactError> {
        let file = self.file;
        let name = || tensor.name.clone();
        if tensor.data_location == EXTERNAL || !tensor.external_data.is_empty() {
            let mut entries = tensor.external_data.iter();
            let location = entries.find(|entry| entry.key == "location");
            let location = location
                .map(|entry| entry.value.clone())
                .unwrap_or_default();
            return Err(ArtifactError::ExternalData {
                file,
                tensor: name(),
                location,
            });
        }
        if holds_nan(tensor) {
            Err(ArtifactError::NotANumber {
                file,
                tensor: name(),
            })
        } else {
            Ok(())
        }
    }
}

/// Returns whether an element of a floating-point tensor is NaN.
fn holds_nan(tensor: &TensorProto) -> bool {
    const FLOAT16: u16 = 0x7c00;
    const BFLOAT16: u16 = 0x7f80;
    let raw = &tensor.raw_data;
    // NaN: every bit of the exponent, and one of the fraction.
    let short = |exponent: u16| {
        let (numbers, _) = raw.as_chunks::<2>();
        numbers
            .iter()
            .any(|bits| u16::from_le_bytes(*bits) & 0x7fff > exponent)
            || tensor
                .int32_data
                .iter()
                .any(|bits| bits & 0x7fff > exponent.into())
    };
    match tensor.data_type {
        1 => {
            let (numbers, _) = raw.as_chunks::<4>();
            numbers
                .iter()
                .any(|bits| f32::from_le_bytes(*bits).is_nan())
                || tensor.float_data.iter().any(|number| number.is_nan())
        }
        10 => short(FLOAT16),
        11 => {
            let (numbers, _) = raw.as_chunks::<8>();
            numbers
                .iter()
                .any(|bits| f64::from_le_bytes(*bits).is_nan())
                || tensor.double_data.iter().any(|number| number.is_nan())
        }
        16 => short(BFLOAT16),
        _ => false,
    }
}
