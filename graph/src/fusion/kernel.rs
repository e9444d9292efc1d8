use std::ops::Range;

/// A written node with everything that is fused into it. All numbers are nodes of the module. Its nodes as a module of
/// its own are those of `called`, a parameter for each of the `inputs`, and the `body`, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The node that is written to memory.
    pub root: u32,
    /// The nodes of each computation that the body calls, directly or through others, in the order of the module.
    pub called: Vec<Range<u32>>,
    /// The nodes whose written values it reads, in the order of first use.
    pub inputs: Vec<u32>,
    /// The nodes that it computes, ascending, the root last. A constant of one element stands before its first user,
    /// because a kernel has its own copy of it.
    pub body: Vec<u32>,
}

/// What a kernel may have at most. Beyond it, a model was not trained and a compiler takes seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// Maximum number of nodes, with parameters, constants and called computations; at most 65,535.
    pub nodes: u16,
    /// Maximum number of places in the generated code at which one node is computed. Elementwise users at one index
    /// share a place of their operand, and every other user has a place of its own.
    pub places: usize,
}

/// The error of a configuration with a kernel that exceeds the limits.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum KernelTooLarge {
    /// Too many nodes.
    #[error(
        "the kernel that writes node {root} has more than {limit} nodes; fuse fewer nodes into it"
    )]
    Nodes {
        /// The node that the kernel writes.
        root: u32,
        /// The limit.
        limit: usize,
    },
    /// A node that is computed at too many places.
    #[error(
        "the kernel that writes node {root} computes node {node} at more than {limit} places; write node {node} or one \
         of its users"
    )]
    Places {
        /// The node that the kernel writes.
        root: u32,
        /// The node that it computes too often.
        node: u32,
        /// The limit.
        limit: usize,
    },
}

impl KernelTooLarge {
    /// The same fault of a kernel with another root and an equal rest.
    pub(super) fn of_root(self, root: u32) -> Self {
        match self {
            Self::Nodes { limit, .. } => Self::Nodes { root, limit },
            Self::Places { node, limit, .. } => Self::Places { root, node, limit },
        }
    }
}

impl Kernel {
    /// Returns the number of nodes of the kernel as a module of its own.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a kernel has at least its root"
    )]
    pub fn len(&self) -> usize {
        self.called
            .iter()
            .map(ExactSizeIterator::len)
            .sum::<usize>()
            + self.inputs.len()
            + self.body.len()
    }

    /// Returns the number of nodes of the program that the kernel computes, its own copies of constants included.
    #[must_use]
    pub fn computed(&self) -> usize {
        self.body.len()
    }
}

impl Default for KernelLimits {
    /// Returns as many nodes as a segment has, and as many places as XLA:CPU compiles in seconds.
    fn default() -> Self {
        Self {
            nodes: 512,
            places: 15,
        }
    }
}
