use std::{collections::HashMap, ops::Range};

/// The computations of a module, by id.
#[derive(Debug, Default)]
pub(crate) struct Computations {
    /// Whether the module lists its instructions in the order of execution, as a compiled module does.
    pub(crate) is_scheduled: bool,
    /// Id of the entry computation, if the module names it.
    pub(super) entry_id: Option<i64>,
    by_id: HashMap<i64, Computation>,
    /// Id of the computation that is being read.
    open: Option<i64>,
    closed: usize,
}

/// A computation: the nodes that it has, and the id of its root instruction.
#[derive(Debug)]
pub(crate) struct Computation {
    pub(crate) root_id: i64,
    pub(crate) nodes: Range<usize>,
}

impl Computations {
    /// Returns the number of closed computations.
    pub(super) fn len(&self) -> usize {
        self.closed
    }

    /// Opens a computation whose first node is the next one. Returns whether its id is new.
    pub(super) fn begin(&mut self, id: i64, root_id: i64, nodes: usize) -> bool {
        self.open = Some(id);
        self.by_id.insert(id, Computation { root_id, nodes: nodes..nodes }).is_none()
    }

    /// Closes the computation after its last node.
    pub(super) fn end(&mut self, nodes: usize) {
        if let Some(computation) = self.open.take().and_then(|id| self.by_id.get_mut(&id)) {
            computation.nodes.end = nodes;
        }
        self.closed += 1;
    }

    /// Returns the entry computation, which has id 0 unless the module names another.
    pub(crate) fn entry(&self) -> Option<&Computation> {
        self.get(self.entry_id.unwrap_or(0))
    }

    /// Returns the computation with this id.
    pub(crate) fn get(&self, id: i64) -> Option<&Computation> {
        self.by_id.get(&id)
    }
}
