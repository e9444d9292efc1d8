//! Whether an ONNX model has the inputs and outputs of the artifact contract.

use ort::{
    session::Session,
    value::{Outlet, TensorElementType, ValueType},
};

use super::ArtifactError;

/// Checks names, types and ranks, each as `name type[rank]` and in the order of names.
pub(super) fn check_interface(
    file: &'static str,
    session: &Session,
    inputs: &[&str],
    output: &str,
) -> Result<(), ArtifactError> {
    check_outlets(file, "inputs", session.inputs(), inputs)?;
    check_outlets(file, "outputs", session.outputs(), &[output])
}

fn check_outlets(
    file: &'static str,
    what: &'static str,
    outlets: &[Outlet],
    expected: &[&str],
) -> Result<(), ArtifactError> {
    let mut found: Vec<String> = outlets.iter().map(outlet_signature).collect();
    found.sort();
    if found == expected {
        return Ok(());
    }
    Err(ArtifactError::Interface { file, what, found: found.join(", "), expected: expected.join(", ") })
}

/// `name type[rank]`.
fn outlet_signature(outlet: &Outlet) -> String {
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => {
            let ty = match ty {
                TensorElementType::Float32 => "float32".to_owned(),
                TensorElementType::Int64 => "int64".to_owned(),
                other => format!("{other:?}"),
            };
            format!("{} {ty}[{}]", outlet.name(), shape.len())
        }
        other => format!("{} {other:?}", outlet.name()),
    }
}
