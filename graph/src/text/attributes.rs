use hlorank_proto::xla::{
    DotDimensionNumbers, HloInstructionProto, PaddingConfig, SparsityDescriptor,
    hlo_instruction_proto::SliceDimensions, padding_config::PaddingDimension,
};

use super::window::{dimension_labels, low_and_high, window};
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
        _ => contraction_attribute(lexer, key, instruction)?,
    }
    Ok(())
}

/// Reads an attribute of a convolution, a dot or an operation with a window.
fn contraction_attribute(
    lexer: &mut Lexer<'_>,
    key: &str,
    instruction: &mut HloInstructionProto,
) -> Result<(), GraphError> {
    match key {
        "window" => instruction.window = Some(window(lexer)?),
        "dim_labels" => instruction.convolution_dimension_numbers = Some(dimension_labels(lexer)?),
        "feature_group_count" => instruction.feature_group_count = lexer.number()?,
        "batch_group_count" => instruction.batch_group_count = lexer.number()?,
        "sparsity" => {
            // Each sparse operand is written as `L.1@2:4`. Only the number of such operands
            // matters: each has one more operand that describes it.
            let start = lexer.position();
            lexer.skip_value()?;
            let operands = lexer.since(start).matches('@').count();
            instruction.dot_sparsity = vec![SparsityDescriptor {}; operands];
        }
        _ => match dot_dimensions(instruction, key) {
            Some(dimensions) => *dimensions = numbers(lexer)?,
            None => lexer.skip_value()?,
        },
    }
    Ok(())
}

/// Returns the field of a list of dimensions of a dot; `None` if the attribute is another one.
fn dot_dimensions<'a>(
    instruction: &'a mut HloInstructionProto,
    key: &str,
) -> Option<&'a mut Vec<i64>> {
    // The message is made only for these attributes, because a dot without any has no dimension
    // numbers.
    let field: fn(&mut DotDimensionNumbers) -> &mut Vec<i64> = match key {
        "lhs_contracting_dims" => |numbers| &mut numbers.lhs_contracting_dimensions,
        "rhs_contracting_dims" => |numbers| &mut numbers.rhs_contracting_dimensions,
        "lhs_batch_dims" => |numbers| &mut numbers.lhs_batch_dimensions,
        "rhs_batch_dims" => |numbers| &mut numbers.rhs_batch_dimensions,
        _ => return None,
    };
    let numbers = &mut instruction.dot_dimension_numbers;
    Some(field(numbers.get_or_insert_default()))
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

/// Reads `0_1x2_3_1`: low, high and interior padding of each dimension.
fn padding(lexer: &mut Lexer<'_>) -> Result<PaddingConfig, GraphError> {
    let position = lexer.position();
    let pattern = lexer.pattern()?;
    let dimensions = pattern.split('x').filter(|dimension| !dimension.is_empty());
    let dimensions = dimensions.map(|dimension| padding_dimension(lexer, dimension, position));
    Ok(PaddingConfig {
        dimensions: dimensions.collect::<Result<_, GraphError>>()?,
    })
}

/// Parses `2_3_1`, or `2_3` without interior padding.
fn padding_dimension(
    lexer: &Lexer<'_>,
    padding: &str,
    position: usize,
) -> Result<PaddingDimension, GraphError> {
    let (edge_padding_low, edge_padding_high) = low_and_high(lexer, padding, position)?;
    let interior = padding.splitn(3, '_').nth(2);
    let interior_padding = interior.map_or(Ok(0), |interior| lexer.parse(interior, position))?;
    Ok(PaddingDimension {
        edge_padding_low,
        edge_padding_high,
        interior_padding,
    })
}
