//! The threads that do all work that takes processor time, so that it never blocks the async threads.
//!
//! Each worker of the `pool` takes one piece of work after the other from a `queue` of two classes: interactive work, which small
//! calls wait for, comes first, and bulk work gets a share. `work` is what a piece may ask of its worker. A small call is one
//! piece, whose future the worker polls; a very small one is polled by the async thread that received it, the receiver.
//! A long computation pauses, and takes `turns` with other work. A session of ONNX Runtime cannot pause, so each worker has
//! sessions of its own, a bulk run is short beside small calls, and the `watch` stops a run that nobody needs or that takes too
//! long. `threads` replaces the thread of a worker that panics or hangs.

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
