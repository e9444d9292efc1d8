use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{Hash, Hasher},
};

use foldhash::fast::RandomState;

use super::kernel::{Kernel, KernelLimits, KernelTooLarge};
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
        alike: &NodeClasses,
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
    fn add_operands(&self, operands: &[u32], alike: &NodeClasses, signature: &mut Vec<u32>) {
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
pub(super) struct NodeClasses {
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

impl NodeClasses {
    /// Compares the nodes of the entry computation by content. `graph` is the graph of the program.
    pub(super) fn new(program: &FusionProgram, graph: &Graph) -> Self {
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

impl FusionProgram {
    /// Returns the kernels that a configuration runs, by root. Bit i of `fused`, counted from the lowest bit of the
    /// first byte, is set if slot i is fused.
    ///
    /// # Errors
    ///
    /// Returns the first kernel that exceeds the limits, counted from the end of the program.
    ///
    /// # Panics
    ///
    /// Panics if `fused` has fewer bits than the program has slots.
    pub fn kernels(
        &self,
        fused: &[u8],
        limits: &KernelLimits,
    ) -> Result<Vec<Kernel>, KernelTooLarge> {
        let mut kernels: Vec<Kernel> = Vec::new();
        self.for_each_root(|root, needed| {
            let fused_operands = self.fused_operands(root, fused);
            let members = Body::members(self, &fused_operands, fused, usize::from(limits.nodes));
            let kernel = self.kernel(&members, root, limits)?;
            self.mark(&kernel.inputs, needed);
            kernels.push(kernel);
            Ok(())
        })?;
        // Kernels are formed from the last root backwards.
        kernels.reverse();
        Ok(kernels)
    }

    /// Marks nodes of the entry computation as needed.
    pub(super) fn mark(&self, nodes: &[u32], needed: &mut [bool]) {
        for &node in nodes {
            needed[self.position(node)] = true;
        }
    }

    /// Calls `form` for the root of each kernel, the last one first. `form` marks the nodes of the entry computation that
    /// the kernel reads.
    pub(super) fn for_each_root(
        &self,
        mut form: impl FnMut(u32, &mut [bool]) -> Result<(), KernelTooLarge>,
    ) -> Result<(), KernelTooLarge> {
        let mut needed = vec![false; self.len()];
        needed[self.position(self.root)] = true;
        // Operands stand before their users, so every user of a node is known when the node is reached.
        for node in pace::in_steps(ROOTS, (self.first..=self.root).rev()) {
            if !needed[self.position(node)] {
                continue;
            }
            if self.node(node).is_free {
                // It is no kernel, but what it passes on must be written by one.
                self.mark(self.operands(node), &mut needed);
            } else {
                form(node, &mut needed)?;
            }
        }
        Ok(())
    }

    /// Forms the kernel of a root and what is fused into it, ascending.
    pub(super) fn kernel(
        &self,
        fused: &[u32],
        root: u32,
        limits: &KernelLimits,
    ) -> Result<Kernel, KernelTooLarge> {
        let limit = usize::from(limits.nodes);
        let mut members = fused.to_vec();
        members.push(root);
        let mut kernel = Kernel {
            root,
            called: self.callees.reached(&members, limit),
            inputs: Vec::new(),
            body: Vec::with_capacity(members.len()),
        };
        let mut known: HashSet<u32> = members.iter().copied().collect();
        for &member in &members {
            for &operand in self.operands(member) {
                // Members before this one may have read it.
                if !known.insert(operand) {
                    continue;
                }
                if self.node(operand).is_scalar_constant {
                    kernel.body.push(operand);
                } else {
                    kernel.inputs.push(operand);
                }
            }
            // Constants of one element that it is the first to read are in front of it.
            kernel.body.push(member);
        }
        if kernel.len() > limit {
            return Err(KernelTooLarge::Nodes { root, limit });
        }
        check_places(self, &members, limits.places)?;
        Ok(kernel)
    }
}

/// Number of nodes between two pauses.
const ROOTS: usize = 64;

/// Checks at how many places of the generated code each member of a kernel is computed. `members` are ascending, and
/// the last one is the root.
///
/// Code is generated per index: an elementwise user computes its operand at its own index, which other users may share;
/// any other user computes it at a new index for each place at which it is computed itself.
fn check_places(
    program: &FusionProgram,
    members: &[u32],
    limit: usize,
) -> Result<(), KernelTooLarge> {
    let Some(&root) = members.last() else {
        return Ok(());
    };
    let mut places = Places::new(members, root);
    // Users stand behind their operands, so the places of a node are complete when the loop reaches
    // it.
    for &node in members.iter().rev() {
        let here = places.of_member.remove(&node).unwrap_or_default();
        // The sets can double with every node, so this check also bounds the work of the loop.
        if here.len() > limit {
            return Err(KernelTooLarge::Places { root, node, limit });
        }
        let operands: BTreeSet<u32> = program.operands(node).iter().copied().collect();
        for operand in operands {
            places.add(operand, &here, program.node(node).is_elementwise);
        }
    }
    Ok(())
}

/// The places at which members are computed.
struct Places {
    /// The places of the members that the loop has not reached.
    of_member: HashMap<u32, BTreeSet<usize>>,
    /// Number of places.
    count: usize,
}

impl Places {
    /// Returns the one place of the root. The other members have none.
    fn new(members: &[u32], root: u32) -> Self {
        let empty = members.iter().map(|&member| (member, BTreeSet::new()));
        let mut of_member: HashMap<u32, BTreeSet<usize>> = empty.collect();
        of_member.entry(root).or_default().insert(0);
        Self {
            of_member,
            count: 1,
        }
    }

    /// Adds the places at which a user that is computed `here` computes its operand, if that is a
    /// member.
    fn add(&mut self, operand: u32, here: &BTreeSet<usize>, is_elementwise: bool) {
        let Some(there) = self.of_member.get_mut(&operand) else {
            return;
        };
        if is_elementwise {
            there.extend(here);
        } else {
            there.extend(self.count..self.count + here.len());
            self.count += here.len();
        }
    }
}
