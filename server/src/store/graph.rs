use hlorank_graph::Task;

/// A graph whose measurements are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGraph {
    /// Task of its configurations.
    pub task: Task,
    /// Its message, compressed.
    pub message: Vec<u8>,
}

/// Maximum number of bytes of the message of a graph that is kept, before it is compressed.
pub const MAX_GRAPH_BYTES: usize = 64 << 20;
