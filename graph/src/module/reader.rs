//! Reads a module in one pass: instructions are counted, decoded and featurized one at a time, so that memory
//! grows with the nodes allowed and not with what a hostile message claims.

use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;
use prost::Message as _;

use super::HloModule;
use crate::{
    FEATURES, GraphArrays, GraphError, Limits, SequenceLengths,
    features::featurize,
    opcode::opcode_id,
    wire::{Fields, Payload},
};

/// What is known while a module is being read.
pub(super) struct Reader<'a, 'l> {
    limits: &'l Limits,
    arrays: GraphArrays,
    lengths: Vec<SequenceLengths>,
    instructions: Vec<&'a [u8]>,
    ranks: Vec<u32>,
    nodes_by_id: HashMap<i64, u32>,
    roots_by_computation: HashMap<i64, i64>,
    references: Vec<References>,
    referenced: Vec<i64>,
    node_splits: Vec<usize>,
    unknown_opcodes: BTreeMap<String, usize>,
    computations: usize,
}

/// Where the operand and callee ids of one node end in `Reader::referenced`.
struct References {
    operands_end: usize,
    callees_end: usize,
}

/// Names of computations after which `TpuGraphs` puts a node split (spec §3).
const SPLIT_NAMES: [&str; 3] = ["cluster", "while", "cond"];

/// Bytes of fields that unfold to more memory than they take on the wire (shape, window, slices, padding, lists
/// of numbers) that one instruction may have. The largest known instructions are tuples of thousands of arrays.
const MAX_NESTED_BYTES: usize = 4 << 20;

impl<'a, 'l> Reader<'a, 'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            arrays: GraphArrays::default(),
            lengths: Vec::new(),
            instructions: Vec::new(),
            ranks: Vec::new(),
            nodes_by_id: HashMap::new(),
            roots_by_computation: HashMap::new(),
            references: Vec::new(),
            referenced: Vec::new(),
            node_splits: vec![0],
            unknown_opcodes: BTreeMap::new(),
            computations: 0,
        }
    }

    pub(super) fn module(&mut self, bytes: &'a [u8]) -> Result<(), GraphError> {
        for field in Fields::of(bytes) {
            match field.map_err(|error| malformed("the module".to_owned(), &error))? {
                (3, Payload::Bytes(computation)) => self.computation(computation)?,
                (3, _) => return Err(malformed("the module".to_owned(), "field 3 is not a computation")),
                _ => {}
            }
        }
        Ok(())
    }

    fn computation(&mut self, bytes: &'a [u8]) -> Result<(), GraphError> {
        // A computation has at least one instruction in any module of XLA's.
        if self.computations >= self.limits.nodes {
            return Err(GraphError::too_many("computations", self.limits));
        }
        let header =
            ComputationHeader::read(bytes).map_err(|detail| malformed(self.computation_place(), &detail))?;
        if self.roots_by_computation.insert(header.id, header.root_id).is_some() {
            return Err(GraphError::DuplicateComputation { id: header.id, name: shortened(header.name) });
        }
        for (_, payload) in Fields::of(bytes).map_while(Result::ok).filter(|(number, _)| *number == 2) {
            let Payload::Bytes(instruction) = payload else {
                return Err(malformed(self.computation_place(), "field 2 is not an instruction"));
            };
            self.instruction(instruction, header.root_id)?;
        }
        if SPLIT_NAMES.iter().any(|name| header.name.contains(name)) {
            self.node_splits.push(self.instructions.len());
        }
        self.computations += 1;
        Ok(())
    }

    fn instruction(&mut self, bytes: &'a [u8], root_id: i64) -> Result<(), GraphError> {
        if self.instructions.len() >= self.limits.nodes {
            return Err(GraphError::too_many_nodes(self.limits));
        }
        self.check_nested_bytes(bytes)?;
        let instruction = HloInstructionProto::decode(bytes)
            .map_err(|error| malformed(self.instruction_place(), &error))?;
        self.register(&instruction)?;
        self.reference(&instruction)?;
        self.featurize(&instruction, instruction.id == root_id);
        self.instructions.push(bytes);
        let rank = instruction.shape.map_or(0, |shape| shape.dimensions.len());
        self.ranks.push(u32::try_from(rank).unwrap_or(u32::MAX));
        Ok(())
    }

    fn check_nested_bytes(&self, instruction: &[u8]) -> Result<(), GraphError> {
        let nested = Fields::of(instruction).map_while(Result::ok).map(|field| match field {
            (3 | 14..=17 | 20 | 21 | 36 | 38, Payload::Bytes(message)) => message.len() + 1,
            (14 | 20 | 36 | 38, Payload::Varint(_)) => 1,
            _ => 0,
        });
        match nested.sum() {
            0..=MAX_NESTED_BYTES => Ok(()),
            found => Err(GraphError::InstructionTooLarge {
                place: self.instruction_place(),
                found,
                limit: MAX_NESTED_BYTES,
            }),
        }
    }

    fn register(&mut self, instruction: &HloInstructionProto) -> Result<(), GraphError> {
        let node = self.next_node();
        match self.nodes_by_id.insert(instruction.id, node) {
            None => Ok(()),
            Some(first) => Err(GraphError::DuplicateInstruction {
                id: instruction.id,
                first,
                second: node,
                name: shortened(&instruction.name),
            }),
        }
    }

    fn reference(&mut self, instruction: &HloInstructionProto) -> Result<(), GraphError> {
        self.referenced.extend_from_slice(&instruction.operand_ids);
        let operands_end = self.referenced.len();
        self.referenced.extend_from_slice(&instruction.called_computation_ids);
        self.references.push(References { operands_end, callees_end: self.referenced.len() });
        if self.referenced.len() > self.limits.edges {
            return Err(GraphError::too_many_edges(self.limits));
        }
        Ok(())
    }

    fn featurize(&mut self, instruction: &HloInstructionProto, is_root: bool) {
        let opcode = opcode_id(&instruction.opcode);
        if opcode == 0 {
            *self.unknown_opcodes.entry(shortened(&instruction.opcode)).or_default() += 1;
        }
        self.arrays.opcodes.push(opcode);
        let start = self.arrays.features.len();
        self.arrays.features.resize(start + FEATURES, 0.0);
        self.lengths.push(featurize(instruction, is_root, &mut self.arrays.features[start..]));
    }

    fn next_node(&self) -> u32 {
        u32::try_from(self.instructions.len()).unwrap_or(u32::MAX)
    }

    fn computation_place(&self) -> String {
        format!("computation {}", self.computations)
    }

    fn instruction_place(&self) -> String {
        format!("node {} (in computation {})", self.instructions.len(), self.computations)
    }

    pub(super) fn finish(mut self) -> Result<HloModule<'a>, GraphError> {
        if self.instructions.is_empty() {
            return Err(GraphError::Empty);
        }
        if self.node_splits.last() < Some(&self.instructions.len()) {
            self.node_splits.push(self.instructions.len());
        }
        self.arrays.edges = self.edges()?;
        self.arrays.sequence_lengths = Some(self.lengths);
        Ok(HloModule {
            arrays: self.arrays,
            node_splits: self.node_splits,
            unknown_opcodes: self.unknown_opcodes,
            instructions: self.instructions,
            ranks: self.ranks,
            nodes_by_id: self.nodes_by_id,
        })
    }

    /// Edges to operands and to the roots of callees, sorted, each once.
    fn edges(&self) -> Result<Vec<[u32; 2]>, GraphError> {
        let mut edges = Vec::with_capacity(self.referenced.len());
        let mut start = 0;
        for (node, references) in (0..).zip(&self.references) {
            let first = edges.len();
            for &id in &self.referenced[start..references.operands_end] {
                edges.push([node, self.operand(node, id)?]);
            }
            for &id in &self.referenced[references.operands_end..references.callees_end] {
                edges.push([node, self.callee_root(node, id)?]);
            }
            edges[first..].sort_unstable();
            start = references.callees_end;
        }
        edges.dedup();
        Ok(edges)
    }

    fn operand(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        self.nodes_by_id.get(&id).copied().ok_or(GraphError::UnknownOperand { node, id })
    }

    fn callee_root(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        let root = self.roots_by_computation.get(&id).and_then(|root_id| self.nodes_by_id.get(root_id));
        root.copied().ok_or(GraphError::UnknownCallee { node, id })
    }
}

/// What a computation says of itself; read before its instructions, wherever it stands in the message.
struct ComputationHeader<'a> {
    name: &'a str,
    id: i64,
    root_id: i64,
}

impl<'a> ComputationHeader<'a> {
    fn read(computation: &'a [u8]) -> Result<Self, String> {
        let mut header = Self { name: "", id: 0, root_id: 0 };
        for field in Fields::of(computation) {
            match field.map_err(|error| error.to_string())? {
                (1, Payload::Bytes(name)) => {
                    header.name = std::str::from_utf8(name).map_err(|error| error.to_string())?;
                }
                (5, Payload::Varint(id)) => header.id = id.cast_signed(),
                (6, Payload::Varint(id)) => header.root_id = id.cast_signed(),
                _ => {}
            }
        }
        Ok(header)
    }
}

/// A name from the module for a message: whoever made it may have made it megabytes long.
fn shortened(name: &str) -> String {
    const SHOWN: usize = 80;
    let mut characters = name.chars();
    let start: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_none() { start } else { format!("{start}…") }
}

fn malformed(place: String, detail: &(impl ToString + ?Sized)) -> GraphError {
    GraphError::Malformed { place, detail: detail.to_string() }
}
