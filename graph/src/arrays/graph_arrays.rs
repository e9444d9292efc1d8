use super::edges::check_ends;
use crate::{
    FEATURES, FeatureSet, GraphError, Limits, Pad, SequenceLengths, is_usually_configurable, pace,
};

/// The arrays of a graph of `n` nodes and `m` edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphArrays {
    /// `[n]` opcode ids.
    pub opcodes: Vec<u8>,
    /// `[n, 140]` row-major features. Sequences are padded with 0.
    pub features: Vec<f32>,
    /// `[n]` lengths of the sequences; `None` if the features were padded with 0, which loses the lengths.
    pub sequence_lengths: Option<Vec<SequenceLengths>>,
    /// `[m]` pairs (consumer, producer), sorted and without duplicates.
    pub edges: Vec<[u32; 2]>,
}

impl GraphArrays {
    /// Builds the arrays from those of a `TpuGraphs` file or of a request: `features` are padded with `pad`, and edges
    /// are in any order.
    pub fn from_features(
        mut opcodes: Vec<u8>,
        mut features: Vec<f32>,
        mut edges: Vec<[u32; 2]>,
        pad: Pad,
        limits: &Limits,
    ) -> Result<Self, GraphError> {
        Self::check_sizes(opcodes.len(), edges.len(), limits)?;
        check_features(opcodes.len(), &features)?;
        check_ends(opcodes.len(), &edges)?;
        clear_unknown(&mut opcodes);
        let sequence_lengths = (pad == Pad::MinusOne).then(|| unpad(&mut features));
        clear_signs_of_zeros(&mut features);
        edges.sort_unstable();
        edges.dedup();
        Ok(Self {
            opcodes,
            features,
            sequence_lengths,
            edges,
        })
    }

    /// Checks the counts against the limits. Call it before arrays are copied.
    pub fn check_sizes(nodes: usize, edges: usize, limits: &Limits) -> Result<(), GraphError> {
        match () {
            () if nodes == 0 => Err(GraphError::Empty),
            () if nodes > limits.nodes => Err(GraphError::too_many_nodes(limits)),
            () if edges > limits.edges => Err(GraphError::too_many_edges(limits)),
            () => Ok(()),
        }
    }

    /// Frees the unused capacity of the arrays.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.opcodes.shrink_to_fit();
        self.features.shrink_to_fit();
        self.sequence_lengths
            .iter_mut()
            .for_each(Vec::shrink_to_fit);
        self.edges.shrink_to_fit();
    }

    /// Returns the number of nodes whose opcode is not in the table.
    #[must_use]
    pub fn unknown_opcodes(&self) -> usize {
        self.opcodes
            .iter()
            .map(|&opcode| usize::from(opcode == 0))
            .sum()
    }

    /// Returns the nodes whose opcode is convolution, dot or reshape, ascending.
    #[must_use]
    pub fn default_configurable(&self) -> Vec<u32> {
        let configurable = |(_, opcode): &(u32, &u8)| is_usually_configurable(**opcode);
        (0..)
            .zip(&self.opcodes)
            .filter(configurable)
            .map(|(node, _)| node)
            .collect()
    }
}

/// Makes every −0 a 0. They are the same number, so they must hash alike.
pub(crate) fn clear_signs_of_zeros(features: &mut [f32]) {
    for feature in features {
        // −0 + 0 is 0, and every other number stays as it is.
        *feature += 0.0;
    }
}

/// Gives opcodes behind the table, such as those of a newer one, the id of unknown opcodes.
fn clear_unknown(opcodes: &mut [u8]) {
    let known = FeatureSet::TPUGRAPHS.opcodes().len();
    for opcode in opcodes {
        if usize::from(*opcode) > known {
            *opcode = 0;
        }
    }
}

fn check_features(nodes: usize, features: &[f32]) -> Result<(), GraphError> {
    if features.len() != nodes * FEATURES {
        return Err(GraphError::ArrayLength {
            array: "node_feat",
            found: features.len(),
            expected: nodes * FEATURES,
        });
    }
    match features.iter().position(|feature| !feature.is_finite()) {
        Some(at) => Err(GraphError::FeatureNotFinite {
            node: at / FEATURES,
            column: at % FEATURES,
        }),
        None => Ok(()),
    }
}

/// Number of nodes between two pauses.
const NODES: usize = 256;

fn unpad(features: &mut [f32]) -> Vec<SequenceLengths> {
    let unpad_row = |row: &mut [f32]| {
        let lengths = SequenceLengths::of_row(row);
        lengths.pad_row(row, Pad::Zero);
        lengths
    };
    pace::in_steps(NODES, features.chunks_exact_mut(FEATURES))
        .map(unpad_row)
        .collect()
}
