//! Calls with JSON over HTTP, for clients without gRPC, by curl.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod answers;
mod curl;
mod description;
mod headers;
mod refusals;
mod secured;
