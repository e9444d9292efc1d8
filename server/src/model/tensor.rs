use hlorank_graph::{ConfigInput, ConfigValues};
use ort::{session::SessionInputValue, value::TensorRef};

/// The input `config` of a model as ONNX Runtime takes it, without a copy.
pub(super) fn config_value(input: &ConfigInput) -> ort::Result<SessionInputValue<'_>> {
    let shape = input.shape.as_slice();
    Ok(match &input.values {
        ConfigValues::Float32(values) => {
            TensorRef::from_array_view((shape, values.as_slice()))?.into()
        }
        ConfigValues::Int64(values) => {
            TensorRef::from_array_view((shape, values.as_slice()))?.into()
        }
    })
}
