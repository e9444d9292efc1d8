//! Calls whose messages are JSON, in the unary form of the Connect protocol: for clients without gRPC. They pass the same
//! layers as calls of gRPC.

mod answer;
mod answer_body;
mod calls;
mod duplicates;
mod failure;
mod method;
mod openapi;
mod request;

pub(super) use answer::answer_json;
pub use calls::{JsonCalls, is_json};
pub use failure::failure;
pub(super) use method::JsonMethod;
pub use openapi::openapi;
pub(super) use request::JsonMessage;
