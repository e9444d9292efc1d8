//! The bits of a fusion configuration: one per slot, from the lowest bit of the first byte.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use crate::{
    FusionError, HloModule,
    hash::CanonicalForm,
    opcode::is_elementwise,
    pace, shortened,
    syntax::{OPAQUE, TOKEN, TUPLE, row_major},
};

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
            callees: Callees::new(module),
            slots,
        })
    }

    /// Returns the nodes that have a bit, ascending: those that a loop fusion can compute, with one array as output and
    /// a user that a loop fusion can compute.
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

/// What forming kernels needs to know of an instruction of the entry computation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Node {
    /// Whether a loop fusion can compute it.
    pub(crate) is_fusible: bool,
    /// Whether an element of its output needs the elements of its operands at the same index alone.
    pub(crate) is_elementwise: bool,
    /// Whether it takes no time.
    pub(crate) is_free: bool,
    /// Whether it is a constant of one element, which every kernel that reads it copies.
    pub(crate) is_scalar_constant: bool,
}

impl Node {
    pub(crate) fn new(opcode: &str, shape: &ShapeProto) -> Self {
        let is_array =
            !matches!(shape.element_type, TUPLE | OPAQUE | TOKEN) && shape.tuple_shapes.is_empty();
        Self {
            is_fusible: is_array && (is_elementwise(opcode) || OTHERS.contains(&opcode)),
            is_elementwise: is_elementwise(opcode),
            is_free: FREE.contains(&opcode),
            is_scalar_constant: is_array
                && opcode == "constant"
                && shape.dimensions.iter().all(|&size| size == 1),
        }
    }

    /// The facts as bits, in the order of the fields.
    pub(crate) fn bits(self) -> u8 {
        let Self {
            is_fusible,
            is_elementwise,
            is_free,
            is_scalar_constant,
        } = self;
        let facts = [is_fusible, is_elementwise, is_free, is_scalar_constant]
            .into_iter()
            .zip(0..);
        facts.map(|(fact, bit)| u8::from(fact) << bit).sum()
    }
}

/// Opcodes that XLA:CPU can compute element by element inside a loop fusion, beside the elementwise ones. Gather, scatter,
/// select-and-scatter and sort are absent because its code generator aborts on them there.
const OTHERS: [&str; 12] = [
    "broadcast",
    "concatenate",
    "dynamic-slice",
    "dynamic-update-slice",
    "iota",
    "pad",
    "reduce",
    "reduce-window",
    "reshape",
    "reverse",
    "slice",
    "transpose",
];

/// Opcodes that take no time.
const FREE: [&str; 4] = ["constant", "get-tuple-element", "parameter", "tuple"];

/// Opcodes that a module before fusion does not have.
const AFTER_FUSION: [&str; 2] = ["bitcast", "fusion"];

/// Checks that an instruction is one of a module before fusion, and that its array is row-major.
pub(crate) fn check_prepared(
    node: u32,
    instruction: &HloInstructionProto,
) -> Result<(), FusionError> {
    if AFTER_FUSION.contains(&instruction.opcode.as_str()) {
        let (name, opcode) = (shortened(&instruction.name), instruction.opcode.clone());
        return Err(FusionError::NotPrepared { node, name, opcode });
    }
    let Some(shape) = &instruction.shape else {
        return Ok(());
    };
    // Row-major means that the last dimension is the minor one. A shape without a layout is
    // row-major.
    match &shape.layout {
        Some(layout)
            if !layout.minor_to_major.is_empty()
                && layout.minor_to_major != row_major(shape.dimensions.len()) =>
        {
            let order = &layout.minor_to_major;
            Err(FusionError::layout(node, &instruction.name, order))
        }
        _ => Ok(()),
    }
}

/// The computations that the nodes of a module call, as ranges of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Callees {
    calls: BTreeMap<u32, Vec<Range<u32>>>,
}

impl Callees {
    pub(crate) fn new(module: &HloModule<'_>) -> Self {
        let called = |node: u32| {
            let ids = module.nodes.callees(node as usize).iter();
            // The reader has refused callees that are missing.
            let computations = ids.filter_map(|&id| module.computations.get(id));
            computations
                .map(|computation| node_range(&computation.nodes))
                .collect::<Vec<_>>()
        };
        let calls = (0..).take(module.len()).map(|node| (node, called(node)));
        Self {
            calls: calls.filter(|(_, called)| !called.is_empty()).collect(),
        }
    }

    /// Returns the number of bytes that this holds.
    pub(crate) fn bytes(&self) -> usize {
        let ranges: usize = self.calls.values().map(Vec::len).sum();
        self.calls.len() * size_of::<(u32, Vec<Range<u32>>)>() + ranges * size_of::<Range<u32>>()
    }

    /// Returns the computations that a node calls itself.
    pub(crate) fn of_node(&self, node: u32) -> &[Range<u32>] {
        self.calls.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Adds every caller with the computations that it calls to a canonical form.
    pub(crate) fn write(&self, form: &mut CanonicalForm) {
        form.count(self.calls.len());
        for (&caller, called) in &self.calls {
            form.numbers([caller].into_iter());
            form.count(called.len());
            form.numbers(called.iter().flat_map(|nodes| [nodes.start, nodes.end]));
        }
    }

    /// Returns the computations that some nodes call, directly or through others, in the order of the module. Stops
    /// after more than `most` nodes.
    pub(crate) fn reached(&self, nodes: &[u32], most: usize) -> Vec<Range<u32>> {
        let direct = |node| self.calls.get(node).into_iter().flatten().cloned();
        let mut waiting: Vec<Range<u32>> = nodes.iter().flat_map(direct).collect();
        // By first node, which is the order of the module.
        let mut reached = BTreeSet::new();
        let mut count = 0;
        while let Some(called) = waiting.pop().filter(|_| count <= most) {
            if reached.insert((called.start, called.end)) {
                count += called.len();
                // The map is ordered by caller, so the callers inside a computation are a range of
                // it.
                waiting.extend(
                    self.calls
                        .range(called)
                        .flat_map(|(_, calls)| calls.clone()),
                );
            }
        }
        reached.into_iter().map(|(start, end)| start..end).collect()
    }
}

/// Returns a range of nodes as node numbers. A module has fewer than 2^32 nodes.
pub(crate) fn node_range(nodes: &Range<usize>) -> Range<u32> {
    let number = |node| u32::try_from(node).unwrap_or(u32::MAX);
    number(nodes.start)..number(nodes.end)
}
