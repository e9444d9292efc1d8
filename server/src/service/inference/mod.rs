//! The part of the Open Inference Protocol, version 2, that ranks: it translates tensors into a call of `RankConfigs`, and the
//! answer into tensors. Limits, memory, errors and metrics are those of every call.

mod batch;
mod infer;
mod inputs;
mod service;
mod tensor;

pub(crate) use service::Inference;
