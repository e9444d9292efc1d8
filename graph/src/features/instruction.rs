use std::ops::Range;

use hlorank_proto::xla::{ConvolutionDimensionNumbers, HloInstructionProto, WindowDimension};

use super::{FEATURES, SequenceLengths};

/// Writes the features of an instruction into `row`, which holds 140 zeros. Sequences are padded with 0.
pub(crate) fn featurize(
    instruction: &HloInstructionProto,
    is_root: bool,
    row: &mut [f32],
) -> SequenceLengths {
    let mut columns = FeatureRow { row, next: 0 };
    columns.flag(is_root);
    // The column of the element size in bits is 0 throughout the official data.
    columns.value(0);
    let shape = instruction.shape.as_ref();
    let element_type = shape.map_or(0, |shape| shape.element_type);
    // The one-hot slot of an `xla.PrimitiveType`. Types that are newer than `TpuGraphs` have none.
    let slot = match element_type {
        0..=12 => usize::try_from(element_type).ok(),
        16 => Some(13), // BF16
        15 => Some(14), // C64
        18 => Some(15), // C128
        13 => Some(16), // TUPLE
        14 => Some(17), // OPAQUE
        17 => Some(18), // TOKEN
        _ => None,
    };
    if let (slots, Some(slot)) = (columns.take(19), slot) {
        slots[slot] = 1.0;
    }
    let sizes = shape.map_or(&[][..], |shape| &shape.dimensions);
    columns.aggregate(6, sizes.iter().copied());
    columns.count(shape.map_or(0, |shape| shape.tuple_shapes.len()));
    columns.value(instruction.parameter_number);
    let dimensions = columns.sequence(6, &instruction.dimensions);
    write_window(instruction, &mut columns);
    // An instruction that is no convolution has zeros in these columns, and no used places.
    let absent = ConvolutionDimensionNumbers::default();
    let numbers = instruction.convolution_dimension_numbers.as_ref();
    let numbers = numbers.unwrap_or(&absent);
    columns.value(numbers.input_batch_dimension);
    columns.value(numbers.input_feature_dimension);
    let input_spatial = columns.sequence(4, &numbers.input_spatial_dimensions);
    columns.value(numbers.kernel_input_feature_dimension);
    columns.value(numbers.kernel_output_feature_dimension);
    let kernel_spatial = columns.sequence(4, &numbers.kernel_spatial_dimensions);
    columns.value(numbers.output_batch_dimension);
    columns.value(numbers.output_feature_dimension);
    columns.value(instruction.feature_group_count);
    columns.value(instruction.batch_group_count);
    let slices = &instruction.slice_dimensions;
    columns.aggregate(2, slices.iter().map(|slice| slice.start));
    columns.aggregate(2, slices.iter().map(|slice| slice.stride));
    columns.aggregate(2, slices.iter().map(|slice| slice.limit));
    columns.aggregate(2, instruction.dynamic_slice_sizes.iter().copied());
    let padding = instruction.padding_config.as_ref();
    let padding = padding.map_or(&[][..], |padding| &padding.dimensions);
    columns.aggregate(2, padding.iter().map(|one| one.edge_padding_low));
    columns.aggregate(2, padding.iter().map(|one| one.edge_padding_high));
    columns.flag(instruction.is_stable);
    let layout = shape.and_then(|shape| shape.layout.as_ref());
    let order = layout.map_or(&[][..], |layout| &layout.minor_to_major);
    let minor_to_major = columns.sequence(6, order);
    SequenceLengths([dimensions, input_spatial, kernel_spatial, minor_to_major])
}

fn write_window(instruction: &HloInstructionProto, columns: &mut FeatureRow<'_>) {
    let dimensions = instruction
        .window
        .as_ref()
        .map_or(&[][..], |window| &window.dimensions);
    let fields: [fn(&WindowDimension) -> i64; 6] = [
        |dimension| dimension.size,
        |dimension| dimension.stride,
        |dimension| dimension.padding_low,
        |dimension| dimension.padding_high,
        |dimension| dimension.window_dilation,
        |dimension| dimension.base_dilation,
    ];
    for field in fields {
        columns.aggregate(6, dimensions.iter().map(field));
    }
    columns.flags(
        6,
        dimensions.iter().map(|dimension| dimension.window_reversal),
    );
}

/// Writes the first values, then sum and product of all values. Sum and product wrap on overflow, and an empty list has
/// product 1.
pub(crate) fn aggregate(values: impl Iterator<Item = i64>, slots: &mut [f32]) {
    let width = slots.len() - 2;
    let mut sum = 0_i64;
    let mut product = 1_i64;
    for (position, value) in values.enumerate() {
        if position < width {
            slots[position] = to_feature(value);
        }
        sum = sum.wrapping_add(value);
        product = product.wrapping_mul(value);
    }
    slots[width] = to_feature(sum);
    slots[width + 1] = to_feature(product);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "features are f32; XLA's sizes are rounded to nearest even"
)]
fn to_feature(value: i64) -> f32 {
    value as f32
}

/// Fills a row from left to right.
struct FeatureRow<'a> {
    row: &'a mut [f32],
    next: usize,
}

impl FeatureRow<'_> {
    fn take(&mut self, width: usize) -> &mut [f32] {
        let start = self.next;
        self.next += width;
        &mut self.row[start..self.next]
    }

    fn value(&mut self, value: i64) {
        self.take(1)[0] = to_feature(value);
    }

    fn flag(&mut self, flag: bool) {
        self.value(i64::from(flag));
    }

    fn count(&mut self, count: usize) {
        self.value(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// `AGG(width)` of spec §4.
    fn aggregate(&mut self, width: usize, values: impl Iterator<Item = i64>) {
        aggregate(values, self.take(width + 2));
    }

    /// `BOOLS(width)` of spec §4.
    fn flags(&mut self, width: usize, flags: impl Iterator<Item = bool> + Clone) {
        for (slot, flag) in self.take(width).iter_mut().zip(flags.clone()) {
            *slot = f32::from(flag);
        }
        self.count(flags.clone().filter(|&flag| flag).count());
        self.count(flags.filter(|&flag| !flag).count());
    }

    /// `SEQ(width)` of spec §4. Returns the number of used places.
    fn sequence(&mut self, width: u8, values: &[i64]) -> u8 {
        for (slot, &value) in self.take(usize::from(width)).iter_mut().zip(values) {
            *slot = to_feature(value);
        }
        // A list may be longer than its columns: the values behind them are no features.
        u8::try_from(values.len()).unwrap_or(width).min(width)
    }
}

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
    use super::*;
    use crate::FEATURES;

    #[test]
    fn an_instruction_without_anything_has_ones_where_products_are_empty() {
        let mut row = vec![0.0; FEATURES];
        featurize(&HloInstructionProto::default(), true, &mut row);
        let ones: Vec<usize> = (0..FEATURES).filter(|&column| row[column] != 0.0).collect();
        assert_eq!(
            ones,
            [
                0, 2, 28, 44, 52, 60, 68, 76, 84, 112, 116, 120, 124, 128, 132
            ]
        );
    }

    #[test]
    fn lists_longer_than_their_slots_count_in_sums_and_products_which_wrap() {
        let mut slots = [0.0; 4];
        aggregate([2, 3, 5].into_iter(), &mut slots);
        assert_eq!(slots, [2.0, 3.0, 10.0, 30.0]);
        aggregate([i64::MAX, 2].into_iter(), &mut slots[..3]);
        assert_eq!(slots[1..3], [to_feature(i64::MIN + 1), -2.0]);
    }
}
