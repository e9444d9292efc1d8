//! The threads that do all work that takes processor time, so that it never blocks the async threads, and the watch over
//! what they run.

mod pool;
mod queue;
mod threads;
mod turns;
mod watch;
mod work;

pub use pool::{ComputePool, WorkResult, WorkerFailed};
pub use threads::yield_to_others;
pub use watch::{RunWatch, WatchedRun};
pub use work::caller;
pub use work::{Class, WaitingCaller, Worker};
