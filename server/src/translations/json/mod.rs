//! Calls whose messages are JSON, in the unary form of the Connect protocol: for clients without gRPC. They pass the same
//! layers as calls of gRPC.

mod answer;
mod calls;
mod failure;
mod openapi;
mod request;

pub(crate) use answer::answer_json;
pub(crate) use calls::translate_json;
pub(crate) use openapi::openapi;
pub(super) use request::JsonMessage;
pub(crate) use request::JsonMethod;
