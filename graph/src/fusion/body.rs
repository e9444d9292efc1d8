use std::{
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
};

use foldhash::fast::RandomState;

use crate::{FusionProgram, Graph, SequenceLengths, arrays::producers, pace, program::is_set};

/// Everything that is fused into a kernel's root, which many roots may share: the users of one chain of fused nodes.
#[derive(Debug)]
pub(super) struct Body {
    /// Number that no other body of the program has.
    number: u32,
    /// The nodes, ascending; with more nodes than a kernel may have, only some.
    pub(super) members: Box<[u32]>,
    /// The nodes that members read and that are no members, without constants of one element.
    pub(super) inputs: Vec<u32>,
    /// What each member, and each node that members read, is to the body.
    roles: HashMap<u32, Role>,
}

/// What a node is to a body, and its position among those that are the same.
#[derive(Clone, Copy, Debug)]
enum Role {
    Member(u32),
    Read(u32),
}

impl Body {
    /// Returns the members of what is fused into a root, whose fused operands are `fused_operands`. Stops after more than
    /// `most` nodes.
    pub(super) fn members(
        program: &FusionProgram,
        fused_operands: &[u32],
        fused: &[u8],
        most: usize,
    ) -> Box<[u32]> {
        let mut members = fused_operands.to_vec();
        let mut known: HashSet<u32> = members.iter().copied().collect();
        // `members` is also the queue of a search: the operands of those before `next` are known. A
        // kernel with more than `most` nodes is refused whatever they are, so the search may stop
        // there.
        let mut next = 0;
        while next < members.len() && members.len() <= most {
            for &operand in program.operands(members[next]) {
                if program.is_fused(operand, fused) && known.insert(operand) {
                    members.push(operand);
                }
            }
            next += 1;
        }
        pace::pause();
        members.sort_unstable();
        members.into()
    }

    pub(super) fn new(program: &FusionProgram, members: Box<[u32]>, number: u32) -> Self {
        let mut roles: HashMap<u32, Role> = members
            .iter()
            .zip(0..)
            .map(|(&member, position)| (member, Role::Member(position)))
            .collect();
        let mut inputs = Vec::new();
        let mut read = 0;
        for &operand in members.iter().flat_map(|&member| program.operands(member)) {
            // A constant of one element is no input, because the kernel has its own copy, but it
            // has a role: roots that read it and roots that do not have different kernels.
            roles.entry(operand).or_insert_with(|| {
                if !program.node(operand).is_scalar_constant {
                    inputs.push(operand);
                }
                read += 1;
                Role::Read(read - 1)
            });
        }
        Self {
            number,
            members,
            inputs,
            roles,
        }
    }

    /// Whether a node is fused into the root.
    pub(super) fn has(&self, node: u32) -> bool {
        matches!(self.roles.get(&node), Some(Role::Member(_)))
    }

    /// Returns what tells the kernel of this body and a root apart from others of the program. Kernels with the same
    /// signature have equal segments.
    pub(super) fn signature(
        &self,
        root: u32,
        program: &FusionProgram,
        graph: &Graph,
        alike: &Alike,
    ) -> Vec<u32> {
        let operands = program.operands(root);
        let mut signature = vec![self.number, alike.number(root)];
        self.add_operands(operands, alike, &mut signature);
        // What the root calls, and what depends on it beside its operands, is rare and compared by
        // number.
        let called = program.callees.of_node(root).iter();
        signature.extend(called.flat_map(|nodes| [3, nodes.start, nodes.end]));
        let operands: HashSet<u32, RandomState> = operands.iter().copied().collect();
        let others = producers(graph.edges(), root).filter(|producer| !operands.contains(producer));
        signature.extend(others.flat_map(|producer| [4, producer]));
        signature
    }

    /// Adds the operands of a root, with the order of those that the body knows nothing of. The
    /// first number of each entry says how to read the others, so that no two roots have one
    /// signature by chance.
    fn add_operands(&self, operands: &[u32], alike: &Alike, signature: &mut Vec<u32>) {
        let mut seen: HashMap<u32, u32, RandomState> = HashMap::default();
        for &operand in operands {
            match self.roles.get(&operand) {
                Some(Role::Member(position)) => signature.extend([0, *position]),
                Some(Role::Read(position)) => signature.extend([1, *position]),
                None => {
                    let next = u32::try_from(seen.len()).unwrap_or(u32::MAX);
                    // Two operands that are alike may be one node or two, which the position tells
                    // apart.
                    let position = *seen.entry(operand).or_insert(next);
                    signature.extend([2, alike.number(operand), position]);
                }
            }
        }
    }

    /// Number of bytes that this holds.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.members)
            + size_of_val(&*self.inputs)
            + self.roles.len() * size_of::<(u32, Role)>()
    }
}

impl FusionProgram {
    /// Returns the distinct operands of a node that are fused into it, ascending.
    pub(super) fn fused_operands(&self, node: u32, fused: &[u8]) -> Vec<u32> {
        if !self.node(node).is_fusible {
            return Vec::new();
        }
        let operands = self.operands(node).iter().copied();
        let mut fused_operands: Vec<u32> = operands
            .filter(|&operand| self.is_fused(operand, fused))
            .collect();
        fused_operands.sort_unstable();
        fused_operands.dedup();
        fused_operands
    }

    fn is_fused(&self, node: u32, fused: &[u8]) -> bool {
        self.slot(node).is_some_and(|slot| is_set(fused, slot))
    }
}

/// Which nodes of a program are alike for a kernel: nodes with the same number have the same features, and are the same to
/// a fusion.
pub(super) struct Alike {
    first: u32,
    /// `[nodes of the entry computation]`
    numbers: Vec<u32>,
}

/// All that a kernel takes from a node itself.
#[derive(PartialEq)]
struct Content<'a> {
    opcode: u8,
    facts: u8,
    lengths: Option<SequenceLengths>,
    /// The features, which are finite.
    row: &'a [f32],
}

impl Eq for Content<'_> {}

impl Hash for Content<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // The lengths of sequences seldom differ where the rows are equal, so the hash leaves them
        // to the comparison.
        self.opcode.hash(hasher);
        self.facts.hash(hasher);
        // Zero and minus zero are equal.
        self.row
            .iter()
            .for_each(|value| (value + 0.0).to_bits().hash(hasher));
    }
}

/// Number of nodes between two pauses.
const NODES: usize = 64;

impl Alike {
    /// Compares the nodes of the entry computation by content. `graph` is the graph of the program.
    pub(super) fn of(program: &FusionProgram, graph: &Graph) -> Self {
        let mut known: HashMap<Content<'_>, u32> = HashMap::new();
        let mut numbers = Vec::with_capacity(program.len());
        for node in pace::in_steps(NODES, program.first..).take(program.len()) {
            // A program has fewer than 2^32 nodes, so the number of contents fits.
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            numbers.push(*known.entry(content(program, graph, node)).or_insert(next));
        }
        Self {
            first: program.first,
            numbers,
        }
    }

    /// The number of a node of the entry computation.
    pub(super) fn number(&self, node: u32) -> u32 {
        self.numbers[(node - self.first) as usize]
    }
}

fn content<'a>(program: &FusionProgram, graph: &'a Graph, node: u32) -> Content<'a> {
    let position = node as usize;
    Content {
        opcode: graph.opcodes()[position],
        facts: program.node(node).bits(),
        lengths: graph.sequence_lengths().map(|lengths| lengths[position]),
        row: graph.raw_row(position),
    }
}
