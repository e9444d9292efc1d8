//! Calls with JSON over HTTP, for clients without gRPC, by curl.

mod answers;
pub(crate) mod curl;
mod description;
mod headers;
mod refusals;
mod secured;
