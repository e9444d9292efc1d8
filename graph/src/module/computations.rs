use std::{collections::HashMap, ops::Range};

use crate::shortened;

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
    /// The start of its name.
    pub(super) name: String,
    pub(crate) root_id: i64,
    /// Its root; `None` if it has no instructions.
    pub(super) root: Option<usize>,
    pub(crate) nodes: Range<usize>,
    /// Nodes of its parameters, by number.
    pub(super) parameters: Vec<u32>,
}

impl Computations {
    /// Returns the number of closed computations.
    pub(super) fn len(&self) -> usize {
        self.closed
    }

    /// Opens a computation whose first node is the next one. Returns whether its id is new.
    pub(super) fn begin(&mut self, name: &str, id: i64, root_id: i64, nodes: usize) -> bool {
        self.open = Some(id);
        // The name is for messages alone; in full, it could take as much memory as the module.
        let name = shortened(name);
        let opened = Computation {
            name,
            root_id,
            root: None,
            nodes: nodes..nodes,
            parameters: Vec::new(),
        };
        self.by_id.insert(id, opened).is_none()
    }

    /// Returns the id of the computation that is being read.
    pub(super) fn open_id(&self) -> Option<i64> {
        self.open
    }

    /// Returns the computation that is being read.
    pub(super) fn open(&mut self) -> Option<&mut Computation> {
        self.open.and_then(|id| self.by_id.get_mut(&id))
    }

    /// Closes the computation.
    pub(super) fn end(&mut self) {
        self.open = None;
        self.closed += 1;
    }

    /// Returns the computation of a node.
    pub(super) fn of_node(&self, node: usize) -> Option<&Computation> {
        // The end of an open computation is set when it closes. A search suffices, since only
        // errors name computations.
        let holds = |computation: &&Computation| {
            computation.nodes.contains(&node)
                || (self.is_open(computation) && node >= computation.nodes.start)
        };
        self.by_id.values().find(holds)
    }

    /// Returns the first of the computations without instructions, by name.
    pub(super) fn empty(&self) -> Option<&Computation> {
        let empty = self
            .by_id
            .values()
            .filter(|computation| computation.nodes.is_empty());
        empty.min_by(|left, right| left.name.cmp(&right.name))
    }

    fn is_open(&self, computation: &Computation) -> bool {
        let open = self.open.and_then(|id| self.by_id.get(&id));
        open.is_some_and(|open| std::ptr::eq(open, computation))
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
