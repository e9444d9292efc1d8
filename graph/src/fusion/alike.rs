use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
};

use crate::{FusionProgram, Graph, SequenceLengths, pace};

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
