//! What is tuned to the device that sessions run on.

use std::time::Duration;

/// The sizes and clocks that suit one kind of device.
#[derive(Debug)]
pub struct DeviceProfile {
    /// Threads of one session, the calling thread included. Each compute thread has sessions of its own.
    pub session_threads: usize,
    /// The number of rows of a block is a multiple of this, so that an embedding does not depend on the rows beside it.
    pub row_multiple: usize,
    /// Nodes of a full block, padding included.
    pub block_nodes: usize,
    /// Nodes below which a block is not split among workers: the fixed cost of a run outweighs the gain.
    pub min_block_nodes: usize,
    /// Fixed cost of a run of the encoder, in nodes: rows are padded to a larger size if that costs less than a run.
    pub run_nodes: usize,
    /// Maximum number of nodes that a call may evaluate as interactive work. More of them, such as those of a new graph,
    /// are bulk work even if the call has few configurations.
    pub interactive_nodes: usize,
    /// Distinct configurations that the head takes at a time: a fraction of a millisecond of work.
    pub head_configs: usize,
    /// Embeddings that are summed for one run of the head.
    pub head_embeddings: usize,
    /// Reads the clock by which the run times of model versions are compared.
    pub clock: fn() -> Duration,
}

impl DeviceProfile {
    /// A processor core per worker, each with sessions of its own.
    ///
    /// ONNX Runtime computes the last numbers of an array, which do not fill a vector register, in another way than the
    /// rest; that gives `row_multiple`. A node takes a few hundred bytes per operator in the encoder, so a full block
    /// stays in the cache of a core; `cargo bench --bench encoder` shows how `block_nodes` and `run_nodes` were chosen.
    pub const CPU: &'static Self = &Self {
        session_threads: 1,
        row_multiple: 4,
        block_nodes: 1024,
        min_block_nodes: 256,
        run_nodes: 96,
        interactive_nodes: 8 * 1024,
        head_configs: 1024,
        head_embeddings: 1 << 18,
        clock: thread_processor_time,
    };

    /// Number of rows of a full block whose rows are padded to `nodes` nodes.
    #[must_use]
    pub fn block_rows(&self, nodes: usize) -> usize {
        (self.block_nodes / nodes / self.row_multiple).max(1) * self.row_multiple
    }
}

/// Processor time of the calling thread, which computes the runs of its sessions. It repeats under load, which wall time
/// does not.
fn thread_processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}
