//! The threads that do all work that takes processor time, so that it never blocks the async threads, and the watch over
//! what they run.

mod pool;
mod watch;

pub use pool::{Class, ComputePool, Computed, Worker, WorkerFailed, yield_to_others};
pub use watch::{RunWatch, WatchedRun};
