//! What is tuned, and the facts about its kind of configuration. The folder `configuration` has the configurations.

use std::fmt;

use hlorank_proto::v1;

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

const TILE: Kind = Kind {
    name: "tile",
    wire: v1::Task::Tile,
    scope: Scope::Kernel,
    element: Element::Float32,
    width: 24,
    array: "config_feat",
};

const LAYOUT: Kind = Kind {
    name: "layout",
    wire: v1::Task::Layout,
    scope: Scope::Nodes,
    element: Element::Int64,
    width: 18,
    array: "node_config_feat",
};

const FUSION: Kind = Kind {
    name: "fusion",
    wire: v1::Task::Fusion,
    scope: Scope::Program,
    element: Element::Float32,
    width: 0,
    array: "fused",
};

const FEATURE_SET: Kind = Kind {
    name: "feature-set",
    wire: v1::Task::FeatureSet,
    scope: Scope::EveryNode,
    element: Element::Float32,
    width: 0,
    array: "config_features",
};

impl Task {
    /// Every task.
    pub const ALL: [Self; 4] = [Self::Layout, Self::Tile, Self::Fusion, Self::FeatureSet];

    /// The facts about its kind of configuration.
    pub const fn kind(self) -> &'static Kind {
        match self {
            Self::Tile => &TILE,
            Self::Layout => &LAYOUT,
            Self::Fusion => &FUSION,
            Self::FeatureSet => &FEATURE_SET,
        }
    }

    /// The name in manifests, settings and messages, such as `tile`.
    pub fn name(self) -> &'static str {
        self.kind().name
    }

    /// The task of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The task on the wire; `None` if it is unspecified.
    pub fn from_wire(task: v1::Task) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.kind().wire == task)
    }
}

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        task.kind().wire
    }
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The facts about one kind of configuration.
#[derive(Debug)]
pub struct Kind {
    /// Name in manifests, settings and messages.
    pub name: &'static str,
    /// Number on the wire.
    pub wire: v1::Task,
    /// What one configuration is about.
    pub scope: Scope,
    /// Element type of the model input `config`.
    pub element: Element,
    /// Values per configuration ([`Scope::Kernel`]) or per configurable node ([`Scope::Nodes`]); 0 if the model takes no
    /// configurations ([`Scope::Program`]) or if its feature set decides ([`Scope::EveryNode`]).
    pub width: usize,
    /// Name of the array of configurations in an npz file.
    pub array: &'static str,
}

impl Kind {
    /// Number in the canonical form of a graph: the number on the wire.
    pub fn number(&self) -> u8 {
        u8::try_from(i32::from(self.wire)).unwrap_or(u8::MAX)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_name_and_a_number_of_its_own() {
        for task in Task::ALL {
            assert_eq!(Task::from_name(&task.to_string()), Some(task));
            let wire = v1::Task::from(task);
            assert_eq!(Task::from_wire(wire), Some(task));
            assert_eq!(i32::from(task.kind().number()), i32::from(wire));
        }
        assert_eq!(Task::from_name("schedule"), None);
        assert_eq!(Task::from_wire(v1::Task::Unspecified), None);
    }
}
