use std::ops::Range;

use hlorank_proto::xla::HloInstructionProto;

use super::{FEATURES, SequenceLengths, featurize};

/// Columns of the element type, the dimensions and the number of tuple elements of a shape.
const SHAPE: Range<usize> = 2..30;
/// Columns of the layout of a shape.
const LAYOUT: Range<usize> = 134..140;

/// Returns the features of the parameter that stands for a node, in a module that has its value as an argument.
/// `row` and `lengths` are those of the node.
pub(crate) fn parameter_row(
    row: &[f32],
    lengths: SequenceLengths,
    number: i64,
) -> (Vec<f32>, SequenceLengths) {
    let parameter = HloInstructionProto {
        parameter_number: number,
        ..HloInstructionProto::default()
    };
    let mut copy = vec![0.0; FEATURES];
    // A parameter has the shape and layout of its value, and nothing else of the instruction that
    // computes it.
    let mut copied = featurize(&parameter, false, &mut copy);
    for columns in [SHAPE, LAYOUT] {
        copy[columns.clone()].copy_from_slice(&row[columns]);
    }
    // The layout is the last of the four sequences.
    copied.0[3] = lengths.0[3];
    (copy, copied)
}

#[cfg(test)]
mod tests {
    use hlorank_proto::xla::{LayoutProto, ShapeProto};

    use super::*;

    #[test]
    fn a_parameter_keeps_the_shape_of_its_node_alone() {
        let layout = Some(LayoutProto {
            minor_to_major: vec![1, 0],
        });
        let shape = Some(ShapeProto {
            element_type: 11,
            dimensions: vec![3, 5],
            layout,
            ..ShapeProto::default()
        });
        let node = HloInstructionProto {
            shape: shape.clone(),
            dimensions: vec![1, 0],
            ..HloInstructionProto::default()
        };
        let mut row = vec![0.0; FEATURES];
        let lengths = featurize(&node, true, &mut row);
        let parameter = HloInstructionProto {
            shape,
            parameter_number: 7,
            ..HloInstructionProto::default()
        };
        let mut expected = vec![0.0; FEATURES];
        let expected_lengths = featurize(&parameter, false, &mut expected);
        assert_eq!(
            parameter_row(&row, lengths, 7),
            (expected, expected_lengths)
        );
    }
}
