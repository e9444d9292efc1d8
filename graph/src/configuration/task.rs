/// What is tuned. It decides which configurations apply to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// One kernel; a configuration is its tile.
    Tile,
    /// A whole module; a configuration sets the layouts of its configurable nodes.
    Layout,
    /// A whole program before fusion; a configuration chooses which nodes are computed inside the kernels of their users.
    Fusion,
    /// A graph of a named feature set; a configuration gives every node the configuration columns of the set.
    FeatureSet,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 4] = [Self::Layout, Self::Tile, Self::Fusion, Self::FeatureSet];
}
