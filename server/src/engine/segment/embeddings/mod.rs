//! The embedding of every row, each evaluated once across calls.
//!
//! A row is looked up in a cache. What is missing waits in a queue of its padded size, where the rows of all calls meet,
//! and workers take them from there in blocks. A call that needs a row which another call waits for waits with it.

mod cache;
mod call;
mod complete;
mod running;
mod waiting;

pub use self::cache::CacheBytes;
pub(super) use self::complete::CacheLookup;
pub(crate) use self::{cache::EmbeddingCache, waiting::Embeddings};
