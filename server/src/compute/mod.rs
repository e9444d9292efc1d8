//! The threads that do all work that takes processor time, so that it never blocks the async threads, and the watch over
//! what they run.

mod at_once;
mod pool;
mod queue;
mod threads;
mod turns;
mod watch;
mod work;

pub use at_once::caller;
pub use pool::{ComputePool, Computed, WorkerFailed};
pub use threads::yield_to_others;
pub use watch::{RunWatch, WatchedRun};
pub use work::{Caller, Class, Worker};
