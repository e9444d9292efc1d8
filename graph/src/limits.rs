/// Limits on the size of a graph and of a batch. They are checked before memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of instructions of one module.
    pub nodes: usize,
    /// Maximum number of operand and callee references of one module.
    pub edges: usize,
    /// Maximum number of configurations of one batch.
    pub configs: usize,
    /// Maximum number of entries (configurations times configurable nodes) of one batch; each takes two bytes.
    pub config_entries: usize,
}

/// One field of [`Limits`]. An error names the limit by it, and a caller knows which of its settings raises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// [`Limits::nodes`].
    Nodes,
    /// [`Limits::edges`].
    Edges,
    /// [`Limits::configs`].
    Configs,
    /// [`Limits::config_entries`].
    ConfigEntries,
}

impl Default for Limits {
    /// Returns twice the largest graph of `TpuGraphs` and several times its largest batch (spec: 43,615 nodes, 100,040
    /// layout configurations; Kaufman 2021: up to 500,000 tiles).
    fn default() -> Self {
        Self {
            nodes: 100_000,
            edges: 400_000,
            configs: 500_000,
            config_entries: 64 << 20,
        }
    }
}
