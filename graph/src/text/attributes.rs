use hlorank_proto::xla::{
    ConvolutionDimensionNumbers, HloInstructionProto, PaddingConfig, Window, WindowDimension,
    hlo_instruction_proto::SliceDimensions, padding_config::PaddingDimension,
};

use crate::{GraphError, syntax::Lexer};

/// Reads the value of an attribute into its field. Values that no feature uses are skipped. Callees and control
/// predecessors are read by the parser of instructions.
pub(super) fn attribute(
    lexer: &mut Lexer<'_>,
    key: &str,
    instruction: &mut HloInstructionProto,
) -> Result<(), GraphError> {
    match key {
        "dimensions" => instruction.dimensions = numbers(lexer)?,
        // XLA keeps both in the field of `dimensions`.
        "iota_dimension" | "inferred_dimension" => instruction.dimensions = vec![lexer.number()?],
        "slice" => instruction.slice_dimensions = braces(lexer, slice)?,
        "dynamic_slice_sizes" => instruction.dynamic_slice_sizes = numbers(lexer)?,
        "padding" => instruction.padding_config = Some(padding(lexer)?),
        // A gather has an attribute of this name too, which XLA keeps in a field that no feature
        // uses.
        "slice_sizes" if instruction.opcode.starts_with("collective-permute") => {
            instruction.dynamic_slice_sizes = braces(lexer, numbers)?.concat();
        }
        "index" => instruction.tuple_index = lexer.number()?,
        "is_stable" => instruction.is_stable = lexer.word() == "true",
        "window" => instruction.window = Some(window(lexer)?),
        "dim_labels" => instruction.convolution_dimension_numbers = Some(dimension_labels(lexer)?),
        "feature_group_count" => instruction.feature_group_count = lexer.number()?,
        "batch_group_count" => instruction.batch_group_count = lexer.number()?,
        "lhs_contracting_dims" | "rhs_contracting_dims" | "lhs_batch_dims" | "rhs_batch_dims" => {
            // The message is made only for these attributes, because a dot without any has no
            // dimension numbers.
            let of_dot = instruction.dot_dimension_numbers.get_or_insert_default();
            let dimensions = match key {
                "lhs_contracting_dims" => &mut of_dot.lhs_contracting_dimensions,
                "rhs_contracting_dims" => &mut of_dot.rhs_contracting_dimensions,
                "lhs_batch_dims" => &mut of_dot.lhs_batch_dimensions,
                _ => &mut of_dot.rhs_batch_dimensions,
            };
            *dimensions = numbers(lexer)?;
        }
        _ => lexer.skip_value()?,
    }
    Ok(())
}

/// Sets the values that XLA gives to attributes that the text leaves out.
pub(super) fn set_defaults(instruction: &mut HloInstructionProto) {
    match instruction.opcode.as_str() {
        "convolution" | "custom-call" => {
            instruction.feature_group_count = 1;
            instruction.batch_group_count = 1;
        }
        "topk" => instruction.is_stable = true,
        _ => {}
    }
}

/// Changes `dimensions` to what XLA keeps of them. The shape is known.
pub(super) fn keep_dimensions(instruction: &mut HloInstructionProto) {
    let dimensions = &mut instruction.dimensions;
    match instruction.opcode.as_str() {
        // All dimensions of the result, whatever the text says.
        "map" => {
            let shape = instruction.shape.as_ref();
            let rank = shape.map_or(0, |shape| shape.dimensions.len());
            *dimensions = (0..).take(rank).collect();
        }
        // The dimension that was inferred, if there is one.
        "reshape" => dimensions.retain(|&dimension| dimension != -1),
        "ragged-all-to-all" => dimensions.clear(),
        "all-gather" | "all-gather-start" | "reduce-scatter" | "get-dimension-size"
        | "set-dimension-size" => dimensions.truncate(1),
        _ => {}
    }
}

/// Reads `{0,1}`.
pub(super) fn numbers(lexer: &mut Lexer<'_>) -> Result<Vec<i64>, GraphError> {
    braces(lexer, Lexer::number)
}

fn braces<'a, T>(
    lexer: &mut Lexer<'a>,
    item: impl FnMut(&mut Lexer<'a>) -> Result<T, GraphError>,
) -> Result<Vec<T>, GraphError> {
    lexer.expect("{")?;
    lexer.list("}", item)
}

/// Reads `[0:4]` or `[0:4:2]`: start, limit and stride.
fn slice(lexer: &mut Lexer<'_>) -> Result<SliceDimensions, GraphError> {
    lexer.expect("[")?;
    let start = lexer.number()?;
    lexer.expect(":")?;
    let limit = lexer.number()?;
    let stride = if lexer.eat(":") { lexer.number()? } else { 1 };
    lexer.expect("]")?;
    Ok(SliceDimensions {
        start,
        limit,
        stride,
    })
}

/// Reads `0_1x2_3_1`: low, high and, which no feature uses, interior padding of each dimension.
fn padding(lexer: &mut Lexer<'_>) -> Result<PaddingConfig, GraphError> {
    let position = lexer.position();
    let pattern = lexer.pattern()?;
    let dimensions = pattern.split('x').filter(|dimension| !dimension.is_empty());
    let dimensions = dimensions.map(|padding| {
        let (edge_padding_low, edge_padding_high) = low_and_high(lexer, padding, position)?;
        Ok(PaddingDimension {
            edge_padding_low,
            edge_padding_high,
        })
    });
    Ok(PaddingConfig {
        dimensions: dimensions.collect::<Result<_, GraphError>>()?,
    })
}

/// The defaults of a dimension of a window.
const DIMENSION: WindowDimension = WindowDimension {
    size: 1,
    stride: 1,
    padding_low: 0,
    padding_high: 0,
    window_dilation: 1,
    base_dilation: 1,
    window_reversal: false,
};

/// A part of a window, such as `stride=2x2`: one value per dimension.
struct Part<'a> {
    start: usize,
    key: &'a str,
    values_start: usize,
    values: &'a str,
}

/// Reads `{size=3x3 stride=2x2 pad=0_1x0_1}`, in any order.
pub(super) fn window(lexer: &mut Lexer<'_>) -> Result<Window, GraphError> {
    lexer.expect("{")?;
    // The number of dimensions follows from `size`, which may come last, so the parts are read
    // twice.
    let start = lexer.position();
    let mut size = 0;
    while !matches!(lexer.peek(), b'}' | 0) {
        let part = Part::read(lexer)?;
        if part.key == "size" {
            size = part.count();
            break;
        }
    }
    let mut dimensions = vec![DIMENSION; size];
    lexer.return_to(start);
    while !lexer.eat("}") {
        let part = Part::read(lexer)?;
        if part.count() != dimensions.len() {
            lexer.return_to(part.values_start);
            return Err(lexer.unexpected("as many values as `size` has"));
        }
        for (dimension, value) in dimensions.iter_mut().zip(part.values.split('x')) {
            part.set(dimension, value, lexer)?;
        }
    }
    Ok(Window { dimensions })
}

impl<'a> Part<'a> {
    fn read(lexer: &mut Lexer<'a>) -> Result<Self, GraphError> {
        let start = lexer.position();
        let key = lexer.word();
        lexer.expect("=")?;
        let values_start = lexer.position();
        let values = lexer.pattern()?;
        Ok(Self {
            start,
            key,
            values_start,
            values,
        })
    }

    /// Returns the number of values.
    fn count(&self) -> usize {
        self.values.split('x').count()
    }

    /// Sets what the part says of a dimension to `value`.
    fn set(
        &self,
        dimension: &mut WindowDimension,
        value: &str,
        lexer: &mut Lexer<'_>,
    ) -> Result<(), GraphError> {
        let number = |value| lexer.parse(value, self.values_start);
        match self.key {
            "size" => dimension.size = number(value)?,
            "stride" => dimension.stride = number(value)?,
            "pad" => {
                (dimension.padding_low, dimension.padding_high) =
                    low_and_high(lexer, value, self.values_start)?;
            }
            // XLA dilates the left operand, which is the base, and the right one, which is the
            // window.
            "lhs_dilate" => dimension.base_dilation = number(value)?,
            "rhs_dilate" => dimension.window_dilation = number(value)?,
            "rhs_reversal" => dimension.window_reversal = number(value)? == 1,
            _ => {
                lexer.return_to(self.start);
                return Err(lexer.unexpected(
                    "`size`, `stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `rhs_reversal`",
                ));
            }
        }
        Ok(())
    }
}

/// Parses the padding `1_2` of one dimension. A second `_` and the text after it are ignored.
pub(super) fn low_and_high(
    lexer: &Lexer<'_>,
    padding: &str,
    position: usize,
) -> Result<(i64, i64), GraphError> {
    let mut parts = padding.split('_');
    let mut next = || lexer.parse(parts.next().unwrap_or_default(), position);
    Ok((next()?, next()?))
}

/// Reads `b01f_01io->b01f`: the roles of the dimensions of input, kernel and output, in order.
pub(super) fn dimension_labels(
    lexer: &mut Lexer<'_>,
) -> Result<ConvolutionDimensionNumbers, GraphError> {
    let position = lexer.position();
    let labels = lexer.pattern()?;
    let parts = labels.split_once("->").and_then(|(operands, output)| {
        let (input, kernel) = operands.split_once('_')?;
        Some([input, kernel, output])
    });
    let Some([input, kernel, output]) = parts else {
        lexer.return_to(position);
        return Err(lexer.unexpected("dimension labels such as `b01f_01io->b01f`"));
    };
    Ok(ConvolutionDimensionNumbers {
        input_batch_dimension: dimension_of(input, 'b'),
        input_feature_dimension: dimension_of(input, 'f'),
        input_spatial_dimensions: spatial(input),
        kernel_input_feature_dimension: dimension_of(kernel, 'i'),
        kernel_output_feature_dimension: dimension_of(kernel, 'o'),
        kernel_spatial_dimensions: spatial(kernel),
        output_batch_dimension: dimension_of(output, 'b'),
        output_feature_dimension: dimension_of(output, 'f'),
        output_spatial_dimensions: spatial(output),
    })
}

/// Returns the position of a label.
fn dimension_of(labels: &str, label: char) -> i64 {
    // A label that is missing leaves the number at protobuf's default. If that makes two labels
    // share a dimension, the check of the convolution refuses it.
    labels
        .find(label)
        .and_then(|position| i64::try_from(position).ok())
        .unwrap_or(0)
}

/// Returns the positions of the labels 0, 1, 2 and so on.
fn spatial(labels: &str) -> Vec<i64> {
    // Spatial dimensions are labelled from 0 without a gap, wherever the labels stand, so their
    // number is enough.
    let count = labels.chars().filter(char::is_ascii_digit).count();
    ('0'..='9')
        .take(count)
        .map(|label| dimension_of(labels, label))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_parts_in_any_order() {
        let read = |text| window(&mut Lexer::new(text)).unwrap().dimensions;
        assert_eq!(read("{}"), []);
        let all = WindowDimension {
            size: 2,
            stride: 3,
            padding_low: -4,
            padding_high: 5,
            base_dilation: 6,
            window_dilation: 7,
            window_reversal: true,
        };
        let text = "{rhs_reversal=1 pad=-4_5 lhs_dilate=6 stride=3 size=2 rhs_dilate=7}";
        assert_eq!(read(text), [all]);
    }

    #[test]
    fn labels_give_positions() {
        let expected = ConvolutionDimensionNumbers {
            input_batch_dimension: 2,
            input_feature_dimension: 0,
            input_spatial_dimensions: vec![3, 1],
            kernel_input_feature_dimension: 1,
            kernel_output_feature_dimension: 2,
            kernel_spatial_dimensions: vec![3, 0],
            output_batch_dimension: 1,
            output_feature_dimension: 3,
            output_spatial_dimensions: vec![0, 2],
        };
        let labels = dimension_labels(&mut Lexer::new("f1b0_1io0->0b1f"));
        assert_eq!(labels, Ok(expected));
    }
}
