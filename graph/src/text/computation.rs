use std::collections::HashMap;

use super::post_order::post_order;
use crate::{
    GraphError, TextError,
    module::{ModuleBuilder, Nodes},
    shortened,
};

/// A computation that is being read.
pub(super) struct Computation<'a> {
    pub(super) id: i64,
    /// Positions of the instructions, by name.
    pub(super) positions: HashMap<&'a str, usize>,
    pub(super) nodes: Nodes<'a>,
    /// Position of the instruction that is marked `ROOT`.
    pub(super) root: Option<usize>,
    /// Control predecessors of each instruction: they run before it and are not its operands.
    pub(super) predecessors: HashMap<usize, Vec<usize>>,
}

impl<'a> Computation<'a> {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            positions: HashMap::new(),
            nodes: Nodes::default(),
            root: None,
            predecessors: HashMap::new(),
        }
    }

    /// Returns the id of an instruction, which is unique in the module.
    pub(super) fn instruction_id(&self, position: usize) -> i64 {
        self.id << 32 | i64::try_from(position).unwrap_or(i64::MAX)
    }

    /// Registers the name of the instruction that was added last.
    pub(super) fn register(&mut self, name: &'a str, is_root: bool) -> Result<(), TextError> {
        let position = self.nodes.len() - 1;
        if self.positions.insert(name, position).is_some() {
            return Err(TextError::DuplicateInstruction { name: shortened(name) });
        }
        if is_root && self.root.replace(position).is_some() {
            return Err(TextError::SecondRoot { name: shortened(name) });
        }
        Ok(())
    }

    /// Adds the instructions to the module in the order in which XLA serializes them. The text of a scheduled module
    /// has another order. The last instruction of the text is the root if none is marked.
    pub(super) fn close(mut self, name: &str, builder: &mut ModuleBuilder<'a, '_>) -> Result<(), GraphError> {
        let count = self.nodes.len();
        let root = self.root.unwrap_or(count.saturating_sub(1));
        self.nodes.mark_root(root);
        builder.begin(name, self.id, self.instruction_id(root))?;
        for position in self.post_order() {
            builder.copy(self.instruction_id(position), &self.nodes, position)?;
        }
        builder.end(name);
        Ok(())
    }

    fn post_order(&self) -> Vec<usize> {
        let operands = |position| {
            let ids = self.nodes.references.operands(position).iter();
            ids.filter_map(|id| usize::try_from(id & i64::from(u32::MAX)).ok())
        };
        let predecessors = |position| self.predecessors.get(&position).into_iter().flatten().copied();
        post_order(self.nodes.len(), operands, predecessors)
    }
}
