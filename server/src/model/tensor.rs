use std::{borrow::Cow, fmt::Debug};

use hlorank_graph::{ConfigInput, ConfigValues};
use ort::{
    session::{Session, SessionInputValue},
    value::{PrimitiveTensorElementType, TensorRef, ToShape},
};

use crate::runtime::Interrupt;

/// The inputs of a session by name.
pub(super) type Inputs<'a> = Vec<(Cow<'a, str>, SessionInputValue<'a>)>;

/// A tensor as ONNX Runtime takes it, without a copy.
pub(super) fn view<'a, T>(
    shape: impl ToShape + 'a,
    values: &'a [T],
) -> ort::Result<SessionInputValue<'a>>
where
    T: PrimitiveTensorElementType + Debug + Clone + 'static,
{
    Ok(TensorRef::from_array_view((shape, values))?.into())
}

/// The input `config` of a model as ONNX Runtime takes it, without a copy.
pub(super) fn config_value(input: &ConfigInput) -> ort::Result<SessionInputValue<'_>> {
    let shape = input.shape.as_slice();
    match &input.values {
        ConfigValues::Float32(values) => view(shape, values),
        ConfigValues::Int64(values) => view(shape, values),
    }
}

/// Runs a session, and returns the values of one output.
pub(super) fn run(
    session: &mut Session,
    inputs: Inputs<'_>,
    output: &str,
    interrupt: &Interrupt,
) -> ort::Result<Vec<f32>> {
    let outputs = session.run_with_options(inputs, interrupt.options())?;
    let (_, values) = outputs[output].try_extract_tensor::<f32>()?;
    // The outputs lie in memory of the session, which the next run uses again.
    Ok(values.to_vec())
}
