use std::fmt;

use hlorank_proto::v1;

/// What is tuned. It decides which configurations apply to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// One kernel; a configuration is its tile.
    Tile,
    /// A whole module; a configuration sets the layouts of its configurable nodes.
    Layout,
}

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        match task {
            Task::Tile => Self::Tile,
            Task::Layout => Self::Layout,
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tile => "tile",
            Self::Layout => "layout",
        })
    }
}
