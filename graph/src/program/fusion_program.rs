//! The bits of a fusion configuration: one per slot, from the lowest bit of the first byte.

use std::ops::Range;

use super::{
    callees::{Callees, node_range},
    node::{Node, check_prepared},
};
use crate::{FusionError, HloModule, hash::CanonicalForm, pace};

/// The entry computation of a prepared module, whose slots are fused or written. All numbers are nodes of the module.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionProgram {
    /// The node whose value is the result.
    pub(crate) root: u32,
    /// The first node of the entry computation. The lists below begin with it.
    pub(crate) first: u32,
    nodes: Vec<Node>,
    operands: Vec<Vec<u32>>,
    pub(crate) callees: Callees,
    slots: Vec<u32>,
    slot_of_node: Vec<Option<usize>>,
}

impl FusionProgram {
    /// Reads the entry computation of a module before fusion.
    pub fn new(module: &HloModule<'_>) -> Result<Self, FusionError> {
        if module.computations.is_scheduled {
            return Err(FusionError::Scheduled);
        }
        let (root, entry) = entry(module)?;
        let nodes = pace::in_steps(1, entry.clone()).map(|node| {
            let instruction = module.head(node).unwrap_or_default();
            check_prepared(node, &instruction)?;
            let shape = instruction.shape.unwrap_or_default();
            Ok(Node::new(&instruction.opcode, &shape))
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let operands = entry.clone().map(|node| operands(module, node, &entry));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let slots = slots(&nodes, &operands, entry.start);
        let mut slot_of_node = vec![None; entry.len()];
        for (slot, &node) in slots.iter().enumerate() {
            slot_of_node[(node - entry.start) as usize] = Some(slot);
        }
        Ok(Self {
            root,
            first: entry.start,
            slot_of_node,
            nodes,
            operands,
            callees: Callees::of(module),
            slots,
        })
    }

    /// Returns the nodes that have a bit, ascending: those that a loop fusion can compute, with one array as output and
    /// a user that a loop fusion can compute.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Returns the slot of a node of the entry computation, if it has one.
    pub(crate) fn slot(&self, node: u32) -> Option<usize> {
        self.slot_of_node[self.position(node)]
    }

    pub(crate) fn node(&self, node: u32) -> Node {
        self.nodes[self.position(node)]
    }

    /// Returns the operands of a node of the entry computation, in order.
    pub(crate) fn operands(&self, node: u32) -> &[u32] {
        &self.operands[self.position(node)]
    }

    /// Returns the position of a node in the entry computation.
    pub(crate) fn position(&self, node: u32) -> usize {
        (node - self.first) as usize
    }

    /// Returns the number of nodes of the entry computation.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of kernels of a configuration at most.
    pub(crate) fn max_kernels(&self) -> usize {
        self.nodes.iter().filter(|node| !node.is_free).count()
    }

    /// Returns the number of bytes that this holds, for a cache that is bounded in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let operands = |operands: &Vec<u32>| size_of_val(&**operands) + size_of::<Vec<u32>>();
        size_of::<Self>()
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.slot_of_node)
            + size_of_val(&*self.slots)
            + self.operands.iter().map(operands).sum::<usize>()
            + self.callees.bytes()
    }

    /// Adds to a canonical form what the graph of the module does not tell: the extent of the entry computation, its root,
    /// for every node what it is to a fusion and its operands in order, and the computations that nodes call.
    pub(crate) fn write(&self, form: &mut CanonicalForm) {
        form.numbers([self.first, self.root].into_iter());
        form.count(self.len());
        for (node, operands) in self.nodes.iter().zip(&self.operands) {
            form.bytes(&[node.bits()]);
            form.count(operands.len());
            form.numbers(operands.iter().copied());
        }
        self.callees.write(form);
    }
}

/// Returns the root and the nodes of the entry computation.
fn entry(module: &HloModule<'_>) -> Result<(u32, Range<u32>), FusionError> {
    let entry = module.computations.entry().ok_or(FusionError::NoEntry)?;
    let root = module.nodes_by_id.get(&entry.root_id);
    let nodes = node_range(&entry.nodes);
    // The module names its root by an id, which may be that of an instruction of another
    // computation.
    let root = root.filter(|&root| nodes.contains(root));
    Ok((*root.ok_or(FusionError::NoEntry)?, nodes))
}

fn operands(
    module: &HloModule<'_>,
    node: u32,
    entry: &Range<u32>,
) -> Result<Vec<u32>, FusionError> {
    let ids = module.nodes.operands(node as usize).iter();
    // Kernels are formed from the root backwards in one pass, which needs every operand in front of
    // its users.
    let earlier = entry.start..node;
    let check = |&operand: &u32| {
        earlier
            .contains(&operand)
            .then_some(operand)
            .ok_or(FusionError::OperandOrder { node, operand })
    };
    // The reader has refused operands that are missing.
    ids.filter_map(|id| module.nodes_by_id.get(id))
        .map(check)
        .collect()
}

fn slots(nodes: &[Node], operands: &[Vec<u32>], first: u32) -> Vec<u32> {
    // A node that no loop fusion reads is written whatever a bit would say, so it has none.
    let mut has_fusible_user = vec![false; nodes.len()];
    for (_, operands) in nodes
        .iter()
        .zip(operands)
        .filter(|(node, _)| node.is_fusible)
    {
        for &operand in operands {
            has_fusible_user[(operand - first) as usize] = true;
        }
    }
    let is_slot = |(_, (node, used)): &(u32, (&Node, bool))| node.is_fusible && *used;
    (first..)
        .zip(nodes.iter().zip(has_fusible_user))
        .filter(is_slot)
        .map(|(node, _)| node)
        .collect()
}

/// Number of bytes of a configuration.
pub(crate) fn row_bytes(slots: usize) -> usize {
    slots.div_ceil(8)
}

/// Whether the bit of a slot is set.
pub(crate) fn is_set(row: &[u8], slot: usize) -> bool {
    row[slot / 8] >> (slot % 8) & 1 == 1
}

/// Changes the bit of a slot.
pub(crate) fn flip(row: &mut [u8], slot: usize) {
    row[slot / 8] ^= 1 << (slot % 8);
}
