//! The graphs of calls: read once from what clients send, and cached.

mod cache;
mod find;
mod read;
mod sent;

pub use cache::{GraphCache, Source, Warning};
pub(crate) use find::{FoundGraph, Graphs};
pub(crate) use sent::{GraphContent, GraphOrigin, SentGraph};
