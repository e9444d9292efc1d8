//! The needed messages of the V2 inference protocol (`inference.GRPCInferenceService/ModelInfer`), with its field
//! numbers.

use hlorank_tests::prelude::*;

/// Inference request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelInferRequest {
    #[prost(string, tag = "1")]
    pub(crate) model_name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) inputs: Vec<Tensor>,
}

/// Inference response.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelInferResponse {
    #[prost(message, repeated, tag = "5")]
    pub(crate) outputs: Vec<Tensor>,
}

/// Input or output tensor.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tensor {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape: Vec<i64>,
    #[prost(message, optional, tag = "5")]
    pub(crate) contents: Option<Contents>,
}

/// Elements of a tensor.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Contents {
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) numbers: Vec<u32>,
    #[prost(float, repeated, tag = "6")]
    pub(crate) floats: Vec<f32>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub(crate) bytes: Vec<Bytes>,
}

impl Tensor {
    /// Returns a tensor of one element of type BYTES.
    pub(crate) fn of_bytes(name: &str, bytes: impl Into<Bytes>) -> Self {
        let contents = Contents {
            bytes: vec![bytes.into()],
            ..Contents::default()
        };
        Self {
            name: name.to_owned(),
            datatype: "BYTES".to_owned(),
            shape: vec![1],
            contents: Some(contents),
        }
    }
}
