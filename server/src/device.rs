//! What is tuned to the device that sessions run on: a processor core per worker, each with sessions of its own.

use std::time::Duration;

/// Threads of one session, the calling thread included. Each compute thread has sessions of its own.
pub(crate) const SESSION_THREADS: usize = 1;

/// The number of rows of a block is a multiple of this, so that an embedding does not depend on the rows beside it: ONNX
/// Runtime computes the last numbers of an array, which do not fill a vector register, in another way than the rest.
pub(crate) const ROW_MULTIPLE: usize = 4;

/// Nodes of a full block, padding included. A node takes a few hundred bytes per operator in the encoder, so a full block
/// stays in the cache of a core; `cargo bench --bench encoder` shows how this and [`RUN_NODES`] were chosen.
pub(crate) const BLOCK_NODES: usize = 1024;

/// Nodes below which a block is not split among workers: the fixed cost of a run outweighs the gain.
pub(crate) const MIN_BLOCK_NODES: usize = 256;

/// Fixed cost of a run of the encoder, in nodes: rows are padded to a larger size if that costs less than a run.
pub(crate) const RUN_NODES: usize = 96;

/// Maximum number of nodes that a call may evaluate as interactive work. More of them, such as those of a new graph,
/// are bulk work even if the call has few configurations.
pub(crate) const INTERACTIVE_NODES: usize = 8 * 1024;

/// Maximum number of columns of all configurations of a call, slots and rows, that the thread that received the call reads, plans
/// and ranks itself if their embeddings are cached. A column takes some tens of nanoseconds.
pub(crate) const RECEIVER_COLUMNS: usize = 4 * 1024;

/// Distinct configurations that the head takes at a time: a fraction of a millisecond of work.
pub(crate) const HEAD_CONFIGS: usize = 1024;

/// Embeddings that are summed for one run of the head.
pub(crate) const HEAD_EMBEDDINGS: usize = 1 << 18;

/// Number of rows of a full block whose rows are padded to `nodes` nodes.
pub(crate) fn block_rows(nodes: usize) -> usize {
    (BLOCK_NODES / nodes / ROW_MULTIPLE).max(1) * ROW_MULTIPLE
}

/// Reads the clock by which the run times of model versions are compared: the processor time of the calling thread, which
/// computes the runs of its sessions. It repeats under load, which wall time does not.
pub(crate) fn thread_processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}
