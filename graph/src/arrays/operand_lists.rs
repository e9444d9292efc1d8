use std::ops::Range;

use crate::{GraphError, Limits};

/// How the instructions of the entry computation read their operands. Features and edges have neither the order of operands
/// nor the dimensions of dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandLists {
    /// The first node of the entry computation, the node behind its last and its root; then for each of its nodes the number of
    /// operands, the operands, the number of further dimensions, and these.
    numbers: Vec<u32>,
}

/// The operands of an instruction in order, and its further dimensions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstructionLists<'a> {
    /// Node numbers.
    pub(crate) operands: &'a [u32],
    /// Of a dot, the contracted dimensions of the left and of the right operand and their batch dimensions, four lists that
    /// begin with their lengths; of a convolution, the spatial dimensions of the output; else empty, as it is if a dimension
    /// is beyond the sixth.
    pub(crate) dimensions: &'a [u32],
}

/// Numbers before the first instruction.
const HEADER: usize = 3;

/// Maximum number of further dimensions: four lists of six, with their lengths.
pub(crate) const MAX_DIMENSIONS: usize = 28;

impl OperandLists {
    /// Returns the maximum number of numbers of a graph within the limits, which count every operand as an edge.
    pub(crate) fn max_numbers(limits: &Limits) -> usize {
        HEADER + limits.edges + limits.nodes.saturating_mul(MAX_DIMENSIONS + 2)
    }

    /// Lists the operands and the further dimensions of nodes from `start` on.
    pub(crate) fn new(
        start: usize,
        root: usize,
        instructions: impl Iterator<Item = (Vec<u32>, Vec<u32>)>,
    ) -> Self {
        let mut numbers = vec![to_u32(start), 0, to_u32(root)];
        let mut end = start;
        for (operands, dimensions) in instructions {
            for list in [operands, dimensions] {
                numbers.push(to_u32(list.len()));
                numbers.extend(list);
            }
            end += 1;
        }
        numbers[1] = to_u32(end);
        numbers.shrink_to_fit();
        Self { numbers }
    }

    /// Checks the lists of a graph with this number of nodes and these edges, which are sorted.
    pub(crate) fn parse(
        numbers: Vec<u32>,
        nodes: usize,
        edges: &[[u32; 2]],
    ) -> Result<Self, GraphError> {
        let lists = Self { numbers };
        lists
            .check(nodes, edges)
            .map_err(|place| GraphError::Operands { place })?;
        Ok(lists)
    }

    /// Returns the first place that is wrong, if there is one.
    fn check(&self, nodes: usize, edges: &[[u32; 2]]) -> Result<(), usize> {
        let [start, end, root, rest @ ..] = self.numbers.as_slice() else {
            return Err(self.numbers.len());
        };
        if start >= end || *end as usize > nodes {
            return Err(1);
        }
        if !(start..end).contains(&root) {
            return Err(2);
        }
        let mut rest = rest;
        for node in *start..*end {
            let place = self.numbers.len() - rest.len();
            let lists = take_lists(&mut rest).ok_or(place)?;
            let is_operand = |operand: &u32| {
                (start..end).contains(&operand) && edges.binary_search(&[node, *operand]).is_ok()
            };
            if !lists.operands.iter().all(is_operand) || lists.dimensions.len() > MAX_DIMENSIONS {
                return Err(place);
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.numbers.len() - rest.len())
        }
    }

    /// Returns the numbers, as arrays and messages hold them.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the nodes of the entry computation.
    pub(crate) fn entry(&self) -> Range<usize> {
        self.numbers[0] as usize..self.numbers[1] as usize
    }

    /// Returns the root of the entry computation.
    pub(crate) fn root(&self) -> usize {
        self.numbers[2] as usize
    }

    /// Returns the lists of the nodes of the entry computation, in order.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = InstructionLists<'_>> {
        let mut rest = &self.numbers[HEADER..];
        self.entry().map_while(move |_| take_lists(&mut rest))
    }
}

fn take_lists<'a>(rest: &mut &'a [u32]) -> Option<InstructionLists<'a>> {
    let mut list = || {
        let (&count, after) = rest.split_first()?;
        let (list, after) = after.split_at_checked(count as usize)?;
        *rest = after;
        Some(list)
    };
    Some(InstructionLists {
        operands: list()?,
        dimensions: list()?,
    })
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
