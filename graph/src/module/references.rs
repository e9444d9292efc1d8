/// Stands for a node that is not known when its id is added.
pub(crate) const UNRESOLVED: u32 = u32::MAX;

/// The ids of the operands and of the called computations of each instruction.
#[derive(Debug, Default)]
pub(crate) struct References {
    ids: Vec<i64>,
    /// The node of each id, or [`UNRESOLVED`].
    nodes: Vec<u32>,
    /// Ends of the operands and of the callees of each instruction in `ids`.
    ends: Vec<[usize; 2]>,
}

impl References {
    /// Adds the references of the next instruction.
    pub(crate) fn push(&mut self, operands: &[i64], callees: &[i64]) {
        // One list serves all instructions: a list for each would take several times the memory of
        // its few ids.
        self.ids.extend_from_slice(operands);
        let operands_end = self.ids.len();
        self.ids.extend_from_slice(callees);
        self.nodes.resize(self.ids.len(), UNRESOLVED);
        self.ends.push([operands_end, self.ids.len()]);
    }

    /// Returns the nodes of the operands of an instruction, to be set and read.
    pub(crate) fn operand_nodes_mut(&mut self, instruction: usize) -> &mut [u32] {
        let start = self.start(instruction);
        &mut self.nodes[start..self.ends[instruction][0]]
    }

    /// Returns the nodes of the operands of an instruction, in order.
    pub(crate) fn operand_nodes(&self, instruction: usize) -> &[u32] {
        &self.nodes[self.start(instruction)..self.ends[instruction][0]]
    }

    /// Iterates over the operands of an instruction: their ids, and their nodes as far as they are
    /// known.
    pub(crate) fn resolved(&self, instruction: usize) -> impl Iterator<Item = (i64, u32)> {
        let ids = self.operands(instruction).iter().copied();
        ids.zip(self.operand_nodes(instruction).iter().copied())
    }

    /// Returns the number of references of all instructions.
    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the ids of the operands of an instruction, in order.
    pub(crate) fn operands(&self, instruction: usize) -> &[i64] {
        &self.ids[self.start(instruction)..self.ends[instruction][0]]
    }

    /// Returns the ids of the computations that an instruction calls.
    pub(crate) fn callees(&self, instruction: usize) -> &[i64] {
        let [operands_end, callees_end] = self.ends[instruction];
        &self.ids[operands_end..callees_end]
    }

    fn start(&self, instruction: usize) -> usize {
        instruction
            .checked_sub(1)
            .map_or(0, |before| self.ends[before][1])
    }
}
