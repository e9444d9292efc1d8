use hlorank_graph::Limits;

/// Limits on what calls may send.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Limits on a graph and on a batch.
    pub limits: Limits,
    /// Maximum number of bytes of one serialized module or HLO text.
    pub graph_bytes: usize,
    /// Maximum number of configurations of one stream.
    pub stream_configs: usize,
}
