//! Evaluates segment models: plans the distinct rows of a batch, evaluates the missing ones, sums their embeddings and
//! scores the sums.

mod block;
mod embeddings;
mod evaluate;
mod plan;
mod sums;

pub use embeddings::CacheBytes;
pub(super) use embeddings::{EmbeddingCache, Embeddings};
pub(super) use evaluate::check;
pub(super) use evaluate::{kernels, score};
