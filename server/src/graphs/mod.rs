//! The graphs of calls: read once from what clients send, and cached.
//!
//! A call names its graph by its hash, or sends it: a module, HLO text, arrays, or a graph of a feature set (`sent`). `find` looks
//! in a cache with two halves: one by the digest of the bytes that were sent, so that bytes that were read before are not read
//! again, and one by the hash of the graph, for calls that name it. Concurrent calls with the same bytes wait for one reading,
//! which runs on a compute thread, and whose memory is held before it begins (`read`).

mod cache;
mod find;
mod read;
mod sent;

pub use cache::{GraphCache, Source, Warning};
pub(crate) use find::{FoundGraph, Graphs};
pub(crate) use sent::{GraphContent, GraphOrigin, SentGraph};
