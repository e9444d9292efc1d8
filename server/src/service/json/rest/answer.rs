//! Writes answers in the REST form.

use std::error::Error;

use bytes::Bytes;
use hlorank_proto::inference::{ModelInferResponse, TensorMetadata};
use http::StatusCode;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::{Value, json, value};

use super::path::{INFER, RestPath};

/// Names as in the protocol, and numbers as numbers.
const FORM: SerializeOptions = SerializeOptions::new()
    .use_proto_field_name(true)
    .stringify_64_bit_integers(false)
    .skip_default_fields(false);

/// Writes a message, with the status of HTTP: one of an error if the server or the model is not ready.
pub(in crate::service::json) fn write_message(
    path: &RestPath,
    output: MessageDescriptor,
    message: Bytes,
) -> Result<(StatusCode, Vec<u8>), Box<dyn Error + Send + Sync>> {
    let answer = if path.method == INFER {
        ranking(ModelInferResponse::decode(message)?)
    } else {
        of_message(path, &DynamicMessage::decode(output, message)?)?
    };
    Ok((status(&answer), serde_json::to_vec(&answer)?))
}

/// Returns the status of HTTP, which probes of readiness read instead of the body.
fn status(answer: &Value) -> StatusCode {
    let is_false = |name: &str| answer.get(name) == Some(&Value::Bool(false));
    if is_false("live") || is_false("ready") {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    }
}

/// Writes a message whose form in REST is almost its own.
fn of_message(path: &RestPath, message: &DynamicMessage) -> Result<Value, serde_json::Error> {
    let mut answer = message.serialize_with_options(value::Serializer, &FORM)?;
    // The REST form requires fields that the messages of gRPC do not have.
    match path.method {
        "ServerMetadata" => answer["extensions"] = json!([]),
        "ModelReady" => answer["name"] = path.model.as_str().into(),
        _ => {}
    }
    Ok(answer)
}

/// Writes a ranking. Its tensors, which are raw bytes in gRPC, become lists of numbers.
fn ranking(response: ModelInferResponse) -> Value {
    let outputs = response
        .outputs
        .into_iter()
        .zip(response.raw_output_contents);
    json!({
        "model_name": response.model_name,
        "model_version": response.model_version,
        "id": response.id,
        "outputs": outputs.map(output).collect::<Vec<_>>(),
    })
}

fn output((described, contents): (TensorMetadata, Bytes)) -> Value {
    let words = contents.as_chunks::<4>().0.iter().copied();
    let data: Value = match &*described.datatype {
        // They become doubles, as which most clients read numbers, and the same floats again.
        "FP32" => words.map(f32::from_le_bytes).collect(),
        "UINT32" => words.map(u32::from_le_bytes).collect(),
        _ => contents.iter().copied().collect(),
    };
    json!({
        "name": described.name,
        "datatype": described.datatype,
        "shape": described.shape,
        "data": data,
    })
}
