use std::ops::Range;

use super::OperandLists;
use crate::{
    FEATURES, FeatureSet, GraphError, Limits, Pad, SequenceLengths, is_usually_configurable,
    opcode_name, pace,
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
    /// How instructions read their operands, if it is known; of kernels only.
    pub operands: Option<OperandLists>,
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
        // Opcodes behind the table, such as those of a newer one, get the id of unknown opcodes.
        let known = FeatureSet::TPUGRAPHS.opcodes().len();
        let newer = opcodes
            .iter_mut()
            .filter(|opcode| usize::from(**opcode) > known);
        newer.for_each(|opcode| *opcode = 0);
        let sequence_lengths = (pad == Pad::MinusOne).then(|| {
            let rows = pace::in_steps(NODES, features.chunks_exact_mut(FEATURES));
            let unpad = |row: &mut [f32]| {
                let lengths = SequenceLengths::of_row(row);
                lengths.pad_row(row, Pad::Zero);
                lengths
            };
            rows.map(unpad).collect()
        });
        clear_signs_of_zeros(&mut features);
        edges.sort_unstable();
        edges.dedup();
        Ok(Self {
            opcodes,
            features,
            sequence_lengths,
            edges,
            operands: None,
        })
    }

    /// Adds how instructions read their operands: the numbers of [`OperandLists`], which are not known if there are none.
    pub fn with_operands(mut self, numbers: Vec<u32>) -> Result<Self, GraphError> {
        if !numbers.is_empty() {
            let nodes = self.opcodes.len();
            self.operands = Some(OperandLists::parse(numbers, nodes, &self.edges)?);
        }
        Ok(self)
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
    pub fn unknown_opcodes(&self) -> usize {
        self.opcodes
            .iter()
            .map(|&opcode| usize::from(opcode == 0))
            .sum()
    }

    /// Returns the nodes whose opcode is convolution, dot or reshape, ascending.
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

fn check_features(nodes: usize, features: &[f32]) -> Result<(), GraphError> {
    if features.len() != nodes * FEATURES {
        return Err(GraphError::ArrayLength {
            array: "node_feat",
            found: features.len(),
            expected: nodes * FEATURES,
        });
    }
    check_finite(features, FEATURES)
}

/// Checks that all features are finite: `[nodes, columns]`, one node after the other.
pub(crate) fn check_finite(features: &[f32], columns: usize) -> Result<(), GraphError> {
    match features.iter().position(|feature| !feature.is_finite()) {
        Some(at) => Err(GraphError::FeatureNotFinite {
            node: at / columns,
            column: at % columns,
        }),
        None => Ok(()),
    }
}

/// Number of nodes between two pauses.
const NODES: usize = 256;

/// Maximum absolute value of a feature, 2^63: features are numbers of 64 bits of an HLO module.
const MAX_FEATURE: f32 = 9_223_372_036_854_775_808.0;

/// Maximum number of elements of a tensor, 2^63: XLA counts them, and their bytes, in 64 bits.
const MAX_ELEMENTS: f64 = 9_223_372_036_854_775_808.0;

/// Columns of the first six dimensions of a node.
pub(crate) const DIMENSIONS: Range<usize> = 21..27;

/// Columns that are 0 or 1: root, element types, stable.
const FLAGS: [Range<usize>; 3] = [0..1, 2..21, 133..134];

/// Opcodes without operands.
const SOURCES: [&str; 2] = ["parameter", "constant"];

/// Checks that features and edges are those that a valid HLO module can have. A model may overflow on larger features.
pub(crate) fn check_range(arrays: &GraphArrays) -> Result<(), GraphError> {
    check_values(&arrays.features)?;
    // Nodes without operands consume something if edges are given in the other direction.
    for (edge, &[node, producer]) in pace::in_steps(pace::STEPS, arrays.edges.iter()).enumerate() {
        let opcode = opcode_name(arrays.opcodes[node as usize]);
        if SOURCES.contains(&opcode) {
            return Err(GraphError::ReversedEdge {
                edge,
                node,
                producer,
                opcode,
            });
        }
    }
    Ok(())
}

fn check_values(features: &[f32]) -> Result<(), GraphError> {
    for (node, row) in pace::in_steps(NODES, features.chunks_exact(FEATURES)).enumerate() {
        if let Some(column) = row.iter().position(|feature| feature.abs() > MAX_FEATURE) {
            return Err(GraphError::FeatureTooLarge { node, column });
        }
        check_row(node, row)?;
        // The product is a f64, which does not overflow: 2^63 to the sixth power is less than
        // 2^1024.
        if elements(row) > MAX_ELEMENTS {
            return Err(GraphError::TensorTooLarge { node });
        }
    }
    Ok(())
}

/// Checks flags and sizes. The size of an unbounded dimension is the smallest number of 64 bits.
fn check_row(node: usize, row: &[f32]) -> Result<(), GraphError> {
    let impossible = |column: usize, what, expected| GraphError::FeatureImpossible {
        node,
        column,
        found: row[column].to_string(),
        what,
        expected,
    };
    let mut flags = FLAGS.into_iter().flatten();
    if let Some(column) = flags.find(|&column| !matches!(row[column], 0.0 | 1.0)) {
        return Err(impossible(column, "a flag", "0 or 1"));
    }
    let is_no_size = |&column: &usize| row[column] < 0.0 && row[column] > -MAX_FEATURE;
    match DIMENSIONS.into_iter().find(is_no_size) {
        Some(column) => Err(impossible(column, "the size of a dimension", "at least 0")),
        None => Ok(()),
    }
}

/// Number of elements of a node's output. Unused and unknown dimensions are 0 or negative, and do not count.
fn elements(row: &[f32]) -> f64 {
    row[DIMENSIONS]
        .iter()
        .map(|&dimension| f64::from(dimension).max(1.0))
        .product()
}

/// Checks that every edge joins two nodes of the graph.
pub(crate) fn check_ends(nodes: usize, edges: &[[u32; 2]]) -> Result<(), GraphError> {
    for (edge, pair) in edges.iter().enumerate() {
        if let Some(&node) = pair.iter().find(|&&node| node as usize >= nodes) {
            return Err(GraphError::UnknownEdgeNode { edge, node, nodes });
        }
    }
    Ok(())
}

/// Returns the producers of a node. Edges are sorted by consumer, so those of a node are adjacent,
/// and found by bisection.
pub(crate) fn producers(edges: &[[u32; 2]], consumer: u32) -> impl Iterator<Item = u32> {
    let first = edges.partition_point(|[other, _]| *other < consumer);
    let own = edges[first..]
        .iter()
        .take_while(move |[other, _]| *other == consumer);
    own.map(|[_, producer]| *producer)
}

/// Checks that edges form no cycle.
pub(crate) fn check_acyclic(nodes: usize, edges: &[[u32; 2]]) -> Result<(), GraphError> {
    // XLA emits producers before consumers. Such a graph has no cycle.
    if edges.iter().all(|[consumer, producer]| consumer > producer) {
        return Ok(());
    }
    find_cycle(nodes, edges).map_or(Ok(()), |node| Err(GraphError::Cycle { node }))
}

/// Returns a node on a cycle, if there is one. Nodes without consumers are removed until no such node is left (Kahn);
/// the others lie on a cycle or are consumed by one, directly or through other nodes.
fn find_cycle(nodes: usize, edges: &[[u32; 2]]) -> Option<u32> {
    // The number of consumers of each node that are not removed yet.
    let mut consumers = vec![0_u32; nodes];
    for [_, producer] in edges {
        consumers[*producer as usize] += 1;
    }
    let counted = (0..).zip(&consumers).filter(|(_, count)| **count == 0);
    let mut ready: Vec<u32> = counted.map(|(node, _)| node).collect();
    while let Some(node) = ready.pop() {
        pace::pause();
        for producer in producers(edges, node) {
            let count = &mut consumers[producer as usize];
            *count -= 1;
            if *count == 0 {
                ready.push(producer);
            }
        }
    }
    let (left, _) = (0..).zip(&consumers).find(|(_, count)| **count > 0)?;
    // Every remaining node has a remaining consumer, so following the consumers from `left` ends on
    // a cycle.
    let mut consumer_of = vec![left; nodes];
    let is_left = |[consumer, _]: &&[u32; 2]| consumers[*consumer as usize] > 0;
    for [consumer, producer] in edges.iter().filter(is_left) {
        consumer_of[*producer as usize] = *consumer;
    }
    // After as many steps as there are nodes, the walk has passed some node twice, so it is on a
    // cycle.
    Some((0..nodes).fold(left, |node, _| consumer_of[node as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(values: &[(usize, f32)]) -> Vec<f32> {
        let mut features = vec![0.0; 2 * FEATURES];
        for &(column, value) in values {
            features[FEATURES + column] = value;
        }
        features
    }

    #[test]
    fn a_feature_has_at_most_64_bits_and_a_tensor_as_many_elements_as_xla_counts() {
        let quarter = 65_536.0;
        let at_most = [(21, quarter), (22, quarter), (23, quarter), (24, 32_768.0)];
        let too_large = GraphError::TensorTooLarge { node: 1 };
        let impossible = |column, found: &str, what, expected| GraphError::FeatureImpossible {
            node: 1,
            column,
            found: found.to_owned(),
            what,
            expected,
        };
        for (values, expected) in [
            (&[(40, MAX_FEATURE), (41, -MAX_FEATURE)][..], Ok(())),
            (
                &[(40, -1e19)],
                Err(GraphError::FeatureTooLarge {
                    node: 1,
                    column: 40,
                }),
            ),
            (&at_most, Ok(())),
            (
                &[&at_most[..], &[(26, 2.0)]].concat(),
                Err(too_large.clone()),
            ),
            (&[(21, 0.0), (22, 1e18), (23, 100.0)], Err(too_large)),
            // The size of an unknown dimension.
            (&[(21, -MAX_FEATURE), (22, -MAX_FEATURE)], Ok(())),
            (&[(0, 1.0), (13, 1.0), (133, 1.0)], Ok(())),
            (&[(20, 0.5)], Err(impossible(20, "0.5", "a flag", "0 or 1"))),
            (&[(133, 3.0)], Err(impossible(133, "3", "a flag", "0 or 1"))),
            (
                &[(26, -1.0)],
                Err(impossible(
                    26,
                    "-1",
                    "the size of a dimension",
                    "at least 0",
                )),
            ),
        ] {
            assert_eq!(check_values(&features(values)), expected, "{values:?}");
        }
    }
}
