use std::{collections::HashMap, ops::Range, sync::Arc};

use hlorank_proto::xla::{HloInstructionProto, ShapeProto};
use prost::Message as _;

use crate::{
    FEATURES, GraphArrays, SequenceLengths,
    arrays::MAX_DIMENSIONS,
    features::featurize,
    opcode::{PARAMETER, opcode_id},
    syntax,
};

/// Column of the number of a parameter.
const PARAMETER_NUMBER: usize = 30;

/// The source of an instruction, from which its name and shape are read again.
#[derive(Clone, Debug)]
pub(crate) enum Origin<'a> {
    /// A serialized `HloInstructionProto`.
    Message(&'a [u8]),
    /// Text that begins with its name.
    Text(&'a str),
    /// An instruction that the text only implies.
    Implied(Arc<ImpliedInstruction>),
}

/// Name, opcode and shape of an instruction that the text only implies.
#[derive(Debug)]
pub(crate) struct ImpliedInstruction {
    name: Box<str>,
    opcode: Box<str>,
    shape: Arc<ShapeProto>,
}

impl Origin<'_> {
    /// Returns the origin of an instruction that the text only implies.
    pub(crate) fn implied(instruction: &HloInstructionProto, shape: Arc<ShapeProto>) -> Self {
        Self::Implied(Arc::new(ImpliedInstruction {
            name: instruction.name.as_str().into(),
            opcode: instruction.opcode.as_str().into(),
            shape,
        }))
    }

    /// Reads the instruction again: of text, its name, shape and opcode.
    pub(crate) fn instruction(&self) -> Option<HloInstructionProto> {
        match self {
            Self::Message(bytes) => HloInstructionProto::decode(*bytes).ok(),
            Self::Text(instruction) => syntax::head(instruction),
            Self::Implied(implied) => Some(HloInstructionProto {
                name: implied.name.to_string(),
                opcode: implied.opcode.to_string(),
                shape: Some(implied.shape.as_ref().clone()),
                ..HloInstructionProto::default()
            }),
        }
    }
}

/// Featurized instructions, with the ids that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Nodes<'a> {
    opcodes: Vec<u8>,
    features: Vec<f32>,
    lengths: Vec<SequenceLengths>,
    /// Rank of each node's output.
    pub(crate) ranks: Vec<u32>,
    pub(crate) origins: Vec<Origin<'a>>,
    /// Ids of the operands and of the called computations of all instructions. A list for each would take several times
    /// the memory of its few ids.
    references: Vec<i64>,
    /// Ends of the operands and of the callees of each instruction in `references`.
    ends: Vec<[usize; 2]>,
    /// The further dimensions of dots and convolutions in [`OperandLists`](crate::OperandLists).
    pub(super) dimensions: HashMap<usize, Vec<u32>>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Featurizes the next instruction and returns the id of its opcode.
    pub(crate) fn push(
        &mut self,
        instruction: &HloInstructionProto,
        is_root: bool,
        origin: Origin<'a>,
    ) -> u8 {
        let opcode = opcode_id(&instruction.opcode);
        self.opcodes.push(opcode);
        // Features are written in place, because a module may have 100,000 rows of 560 bytes.
        let start = self.features.len();
        self.features.resize(start + FEATURES, 0.0);
        self.lengths
            .push(featurize(instruction, is_root, &mut self.features[start..]));
        // Features say the rank only of arrays of fewer than six dimensions, none of which is 0.
        let shape = instruction.shape.as_ref();
        let rank = shape.map_or(0, |shape| shape.dimensions.len());
        self.ranks.push(u32::try_from(rank).unwrap_or(u32::MAX));
        self.origins.push(origin);
        if let Some(dimensions) = further_dimensions(instruction) {
            self.dimensions.insert(self.ends.len(), dimensions);
        }
        self.refer(
            &instruction.operand_ids,
            &instruction.called_computation_ids,
        );
        opcode
    }

    /// Adds a copy of a node of `others`.
    pub(crate) fn copy(&mut self, others: &Self, node: usize) {
        self.opcodes.push(others.opcodes[node]);
        self.features
            .extend_from_slice(&others.features[node * FEATURES..][..FEATURES]);
        self.lengths.push(others.lengths[node]);
        self.ranks.push(others.ranks[node]);
        self.origins.push(others.origins[node].clone());
        if let Some(dimensions) = others.dimensions.get(&node) {
            self.dimensions.insert(self.ends.len(), dimensions.clone());
        }
        self.refer(others.operands(node), others.callees(node));
    }

    /// Adds the references of the next instruction.
    fn refer(&mut self, operands: &[i64], callees: &[i64]) {
        self.references.extend_from_slice(operands);
        let operands_end = self.references.len();
        self.references.extend_from_slice(callees);
        self.ends.push([operands_end, self.references.len()]);
    }

    /// Returns the number of references of all instructions.
    pub(super) fn references(&self) -> usize {
        self.references.len()
    }

    /// Returns the ids of the operands of an instruction, in order.
    pub(crate) fn operands(&self, node: usize) -> &[i64] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before][1]);
        &self.references[start..self.ends[node][0]]
    }

    /// Returns the ids of the computations that an instruction calls.
    pub(crate) fn callees(&self, node: usize) -> &[i64] {
        let [operands_end, callees_end] = self.ends[node];
        &self.references[operands_end..callees_end]
    }

    /// Returns the numbers of the parameters among some nodes. Nodes are too few for a number to be rounded.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a feature of a parameter number is a whole number"
    )]
    pub(super) fn parameter_numbers(&self, nodes: Range<usize>) -> Vec<i64> {
        nodes
            .filter(|&node| self.opcodes[node] == PARAMETER)
            .map(|node| self.features[node * FEATURES + PARAMETER_NUMBER] as i64)
            .collect()
    }

    /// Makes a node the root of its computation.
    pub(crate) fn mark_root(&mut self, node: usize) {
        // `is_root` is the first column.
        self.features[node * FEATURES] = 1.0;
    }

    /// Takes the arrays out. The edges are empty, since ids are not resolved yet.
    pub(super) fn take_arrays(&mut self) -> GraphArrays {
        GraphArrays {
            opcodes: std::mem::take(&mut self.opcodes),
            features: std::mem::take(&mut self.features),
            sequence_lengths: Some(std::mem::take(&mut self.lengths)),
            edges: Vec::new(),
            operands: None,
        }
    }
}

/// Returns the dimensions of a dot or a convolution that features lack; `None` for other instructions, and if one of them is
/// beyond the sixth.
fn further_dimensions(instruction: &HloInstructionProto) -> Option<Vec<u32>> {
    let mut dimensions = Vec::new();
    if let Some(numbers) = &instruction.dot_dimension_numbers {
        for list in [
            &numbers.lhs_contracting_dimensions,
            &numbers.rhs_contracting_dimensions,
            &numbers.lhs_batch_dimensions,
            &numbers.rhs_batch_dimensions,
        ] {
            dimensions.push(i64::try_from(list.len()).ok()?);
            dimensions.extend(list);
        }
    } else if let Some(numbers) = &instruction.convolution_dimension_numbers {
        dimensions.extend(&numbers.output_spatial_dimensions);
    }
    let is_possible = |dimension: &i64| (0..=6).contains(dimension);
    if dimensions.is_empty()
        || dimensions.len() > MAX_DIMENSIONS
        || !dimensions.iter().all(is_possible)
    {
        return None;
    }
    let dimensions = dimensions.into_iter().map(u32::try_from);
    dimensions.collect::<Result<_, _>>().ok()
}
