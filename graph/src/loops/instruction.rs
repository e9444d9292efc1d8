//! What the features say of an instruction.

use crate::{
    FEATURES, GraphArrays,
    arrays::{DIMENSIONS, InstructionLists},
    opcode_name,
};

/// First columns of the groups of `features/set.rs` that are read here.
const ELEMENT_TYPE: usize = 2;
const LISTED_DIMENSIONS: usize = 31;
const WINDOW_SIZE: usize = 37;
const WINDOW_STRIDE: usize = 45;
const WINDOW_DILATION: usize = 69;
const CONVOLUTION: usize = 93;
const FEATURE_GROUPS: usize = 107;

/// Bytes of an element by slot of the type; 4 for others.
const ELEMENT_BYTES: [f64; 14] = [
    4.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 2.0, 4.0, 8.0, 2.0, 4.0, 8.0, 2.0,
];

/// An instruction of the entry computation.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) opcode: &'static str,
    row: &'a [f32],
    /// Used places of `dimensions`, if they are known.
    listed: Option<u8>,
    /// Its operands in order, and its further dimensions.
    pub(super) lists: InstructionLists<'a>,
}

/// One dimension of a window.
#[derive(Clone, Copy)]
pub(super) struct WindowPart {
    pub(super) size: i64,
    pub(super) stride: i64,
    pub(super) dilation: i64,
}

/// Which dimensions of a convolution's tensors are batch, feature and spatial.
pub(super) struct ConvolutionDimensions {
    pub(super) input_batch: usize,
    pub(super) input_feature: usize,
    pub(super) input_spatial: Vec<usize>,
    pub(super) kernel_input: usize,
    pub(super) kernel_output: usize,
    pub(super) kernel_spatial: Vec<usize>,
    pub(super) output_batch: usize,
    pub(super) output_feature: usize,
}

/// The dimensions of the operands of a dot.
pub(super) struct DotDimensions {
    /// Contracted dimensions of the left and of the right operand.
    pub(super) contracted: [Vec<usize>; 2],
    /// Batch dimensions of both.
    pub(super) batch: [Vec<usize>; 2],
}

impl DotDimensions {
    /// Reads four lists that begin with their lengths; `None` if there are others.
    pub(super) fn parse(mut listed: &[u32]) -> Option<Self> {
        let mut list = || {
            let (&count, after) = listed.split_first()?;
            let (list, after) = after.split_at_checked(count as usize)?;
            listed = after;
            Some(list.iter().map(|&dimension| dimension as usize).collect())
        };
        Some(Self {
            contracted: [list()?, list()?],
            batch: [list()?, list()?],
        })
    }
}

impl<'a> Instruction<'a> {
    pub(super) fn new(arrays: &'a GraphArrays, node: usize, lists: InstructionLists<'a>) -> Self {
        Self {
            opcode: opcode_name(arrays.opcodes[node]),
            row: &arrays.features[node * FEATURES..][..FEATURES],
            listed: arrays.sequence_lengths.as_ref().map(|all| all[node].0[0]),
            lists,
        }
    }

    /// Sizes of the output. Features have at most six, and none is 0 or unbounded.
    pub(super) fn sizes(&self) -> Vec<i64> {
        let sizes = self.row[DIMENSIONS].iter();
        sizes
            .take_while(|size| **size >= 1.0)
            .map(|&size| whole(size))
            .collect()
    }

    /// Bytes of an element of the output.
    pub(super) fn element(&self) -> f64 {
        let slots = &self.row[ELEMENT_TYPE..][..ELEMENT_BYTES.len()];
        let slot = slots.iter().position(|slot| *slot == 1.0);
        slot.map_or(4.0, |slot| ELEMENT_BYTES[slot])
    }

    /// The dimensions that the instruction lists, `expected` ones if their number is not known.
    pub(super) fn dimensions(&self, expected: usize) -> Vec<usize> {
        let count = self.listed.map_or(expected, usize::from);
        let listed = self.row[LISTED_DIMENSIONS..][..6].iter().take(count);
        listed.map(|&dimension| place(dimension)).collect()
    }

    /// The window, which has at most six dimensions here.
    pub(super) fn window(&self) -> Vec<WindowPart> {
        let part = |dimension: usize| WindowPart {
            size: whole(self.row[WINDOW_SIZE + dimension]),
            stride: whole(self.row[WINDOW_STRIDE + dimension]).max(1),
            dilation: whole(self.row[WINDOW_DILATION + dimension]).max(1),
        };
        (0..6).map(part).take_while(|part| part.size >= 1).collect()
    }

    /// The dimensions of a convolution with this number of spatial dimensions, at most four.
    pub(super) fn convolution(&self, spatial: usize) -> ConvolutionDimensions {
        let one = |column: usize| place(self.row[CONVOLUTION + column]);
        let list = |column: usize| (column..).take(spatial.min(4)).map(one).collect();
        ConvolutionDimensions {
            input_batch: one(0),
            input_feature: one(1),
            input_spatial: list(2),
            kernel_input: one(6),
            kernel_output: one(7),
            kernel_spatial: list(8),
            output_batch: one(12),
            output_feature: one(13),
        }
    }

    /// Number of groups of features of a convolution.
    pub(super) fn groups(&self) -> i64 {
        whole(self.row[FEATURE_GROUPS]).max(1)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "features are whole numbers of 64 bits"
)]
fn whole(feature: f32) -> i64 {
    feature as i64
}

/// The number of a dimension; one that no tensor has if it is negative.
fn place(feature: f32) -> usize {
    usize::try_from(whole(feature)).unwrap_or(usize::MAX)
}
