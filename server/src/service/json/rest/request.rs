//! Reads requests in the REST form.

use bytes::Bytes;
use hlorank_proto::inference::{ModelInferRequest, ModelReadyRequest, TensorMetadata};
use prost::Message as _;
use serde::{Deserialize, de::Error as _};
use serde_json::Value;

use super::path::{INFER, RestPath};
use crate::service::delivery_error::DeliveryError;

/// The body of a call that ranks. Parameters and the choice of outputs are ignored, as in the gRPC form.
#[derive(Deserialize)]
struct Infer {
    #[serde(default)]
    id: String,
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    datatype: String,
    shape: Vec<i64>,
    data: Value,
}

/// Returns the message of a request.
pub(in crate::service::json) fn read_message(
    path: &RestPath,
    json: &[u8],
) -> Result<Bytes, DeliveryError> {
    let RestPath { model, version, .. } = path.clone();
    if path.method != INFER {
        // The messages about models are alike, and those about the server are empty.
        let name = model;
        return Ok(ModelReadyRequest { name, version }.encode_to_vec().into());
    }
    let request = ModelInferRequest {
        model_name: model,
        model_version: version,
        ..Infer::read(json)?.into_request()?
    };
    Ok(request.encode_to_vec().into())
}

impl Infer {
    fn read(json: &[u8]) -> Result<Self, DeliveryError> {
        serde_json::from_slice(json).map_err(|error| DeliveryError::Json {
            field: ".".to_owned(),
            // The words of an error may repeat a value of megabytes.
            reason: format!("{:.300}", error.to_string()),
        })
    }

    /// Returns the message, whose model the path names.
    fn into_request(self) -> Result<ModelInferRequest, DeliveryError> {
        let mut request = ModelInferRequest {
            id: self.id,
            ..ModelInferRequest::default()
        };
        for input in self.inputs {
            let (metadata, contents) = input.into_tensor()?;
            request.inputs.push(metadata);
            request.raw_input_contents.push(contents.into());
        }
        Ok(request)
    }
}

impl Input {
    /// Returns the tensor and its raw contents.
    fn into_tensor(self) -> Result<(TensorMetadata, Vec<u8>), DeliveryError> {
        let name = self.name;
        let mut contents = Vec::new();
        let added = add_values(self.data, &self.datatype, &mut contents);
        added.map_err(|(place, error)| DeliveryError::Json {
            field: format!("{name:.100}"),
            reason: format!("data{place} of the input `{name:.100}`: {error:.300}"),
        })?;
        let metadata = TensorMetadata {
            name,
            datatype: self.datatype,
            shape: self.shape,
        };
        Ok((metadata, contents))
    }
}

/// Adds a value, or those of a list, to raw contents. An error has its place, such as `[3][0]`.
fn add_values(
    value: Value,
    datatype: &str,
    contents: &mut Vec<u8>,
) -> Result<(), (String, String)> {
    let Value::Array(values) = value else {
        let added = add_value(value, datatype, contents);
        return added.map_err(|error| (String::new(), error.to_string()));
    };
    // Row-major, a nested list has the same numbers in the same order as a flat one. The shape is
    // checked against their number where the tensor is read.
    for (position, value) in values.into_iter().enumerate() {
        let added = add_values(value, datatype, contents);
        added.map_err(|(place, error)| (format!("[{position}]{place}"), error))?;
    }
    Ok(())
}

fn add_value(
    value: Value,
    datatype: &str,
    contents: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    match datatype {
        "BYTES" => add_text(&String::deserialize(value)?, contents)?,
        "INT8" => contents.extend(i8::deserialize(value)?.to_le_bytes()),
        "UINT8" => contents.push(u8::deserialize(value)?),
        "INT32" => contents.extend(i32::deserialize(value)?.to_le_bytes()),
        _ => return Err(unknown(datatype)),
    }
    Ok(())
}

fn unknown(datatype: &str) -> serde_json::Error {
    let reason = format!("no input is {datatype:.20}, but BYTES, INT8, UINT8 or INT32");
    serde_json::Error::custom(reason)
}

/// Adds a text behind its length, as raw contents have it.
fn add_text(text: &str, contents: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let length = u32::try_from(text.len()).map_err(serde_json::Error::custom)?;
    contents.extend(length.to_le_bytes());
    contents.extend_from_slice(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<ModelInferRequest, DeliveryError> {
        let path = RestPath {
            method: INFER,
            model: "model".to_owned(),
            version: "3".to_owned(),
        };
        let message = read_message(&path, json.as_bytes())?;
        Ok(ModelInferRequest::decode(message).unwrap())
    }

    #[test]
    fn lists_flat_or_nested_become_raw_contents() {
        let request = read(
            r#"{"id": "7", "parameters": {"a": [{}]}, "outputs": [{"name": "scores"}], "inputs": [
                {"data": [[1, -2], [256, 4]], "datatype": "INT32", "name": "bounds", "shape": [2, 2]},
                {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["\u00e9"], "parameters": {}}]}"#,
        )
        .unwrap();
        assert_eq!((&*request.model_name, &*request.id), ("model", "7"));
        assert_eq!(request.inputs[0].shape, [2, 2]);
        let bounds = [1_i32, -2, 256, 4].map(i32::to_le_bytes).concat();
        let contents = [bounds, b"\x02\0\0\0\xc3\xa9".to_vec()];
        assert_eq!(request.raw_input_contents, contents);
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        for (datatype, data, words) in [
            ("INT8", "[0, [1, 128]]", "data[1][1] of the input `a`"),
            ("UINT8", "[-1]", "invalid value: integer `-1`"),
            ("INT32", "[1.5]", "floating point `1.5`, expected i32"),
            ("INT8", r#"["x"]"#, "string \"x\", expected i8"),
            ("BYTES", "[1]", "integer `1`, expected a string"),
            ("FP32", "[1]", "no input is FP32, but BYTES"),
        ] {
            let json = format!(
                r#"{{"inputs": [{{"name": "a", "shape": [2], "datatype": "{datatype}", "data": {data}}}]}}"#
            );
            let found = read(&json).unwrap_err().to_string();
            assert!(found.contains(words), "{found}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(json in ".*") {
            let _ = read(&json);
        }
    }
}
