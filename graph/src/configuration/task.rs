/// What is tuned. It decides which configurations apply to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// One kernel; a configuration is its tile.
    Tile,
    /// A whole module; a configuration sets the layouts of its configurable nodes.
    Layout,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 2] = [Self::Layout, Self::Tile];
}
