/// What a graph and a batch may be at most; checked before memory is taken for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of one module.
    pub nodes: usize,
    /// Operand and callee references of one module.
    pub edges: usize,
    /// Candidates of one batch.
    pub configs: usize,
    /// Candidates times configurable nodes of one batch: two bytes each.
    pub config_entries: usize,
}

impl Default for Limits {
    /// Twice the largest graph and several times the largest batch of `TpuGraphs` (spec: 43,615 nodes, 100,040
    /// layout configurations; Kaufman 2021: up to 500,000 tiles).
    fn default() -> Self {
        Self { nodes: 100_000, edges: 400_000, configs: 500_000, config_entries: 64 << 20 }
    }
}
