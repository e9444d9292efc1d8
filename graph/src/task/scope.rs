/// What one configuration is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A kernel as a whole: the graph is one segment, and no node is configurable.
    Kernel,
    /// Configurable nodes: the graph is pruned and cut around them.
    Nodes,
    /// A program before fusion: configurations decide its segments, which are kernels.
    Program,
    /// Every node of a graph, which is scored as a whole: the columns are those of a named feature set.
    EveryNode,
}

/// Element type of a model input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floating point.
    Float32,
    /// 64-bit integer.
    Int64,
}
