//! Shapes that the text leaves out and that follow from those of operands, as XLA's parser derives them.

use hlorank_proto::xla::{DotDimensionNumbers, HloInstructionProto, LayoutProto, ShapeProto};

use super::{computation::ParsedComputation, module::Parser, shapes::ShapeId};
use crate::{
    GraphError, TextError,
    opcode::{is_elementwise, least_operands, opcode_id},
    shortened,
    syntax::{
        Lexer, MAX_RANK, PRED, S32, TOKEN, U32, UNBOUNDED, complex_of, has_layout, real_of,
        row_major, total_size,
    },
};

impl<'a> Parser<'a, '_> {
    /// Gives an instruction the shape that follows from its operands. The instruction begins at `start`.
    pub(super) fn derive_shape(
        &mut self,
        instruction: &mut HloInstructionProto,
        start: usize,
        computation: &ParsedComputation<'a>,
    ) -> Result<ShapeId, GraphError> {
        let operands: Vec<ShapeId> = ParsedComputation::positions_of(&instruction.operand_ids)
            .map(|position| computation.shapes[position])
            .collect();
        let Some(shape) = self.shape_by_rule(instruction, start, &operands)? else {
            let opcode = shortened(&instruction.opcode);
            return Err(self.lexer.error(start, TextError::NoShape { opcode }));
        };
        instruction.shape = Some(self.implied_shape(shape)?);
        Ok(shape)
    }

    /// Returns the shape that follows from the operands; `None` if none does.
    fn shape_by_rule(
        &mut self,
        instruction: &HloInstructionProto,
        start: usize,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeId>, GraphError> {
        match rule(&instruction.opcode) {
            None => Ok(None),
            Some(ShapeRule::Operand(number)) => Ok(operands.get(number).copied()),
            Some(ShapeRule::Operands) if operands.len() == 1 => Ok(Some(operands[0])),
            Some(ShapeRule::Operands | ShapeRule::Tuple) => {
                Ok(Some(self.shapes.tuple(operands.to_vec())))
            }
            Some(ShapeRule::Element) => self.derived_element(start, operands),
            Some(ShapeRule::Callee) => Ok(self.result_of_callee(instruction)),
            Some(ShapeRule::Reduce) => self.reduced(operands, &instruction.dimensions),
            Some(rule) => {
                let array = match rule {
                    ShapeRule::Dot => self.product(instruction, operands)?,
                    rule => self.array_by_rule(rule, instruction, operands)?,
                };
                // Broadcasts and dots of derived arrays could double the rank with every
                // instruction.
                let array = array.filter(|array| array.dimensions.len() <= MAX_RANK);
                Ok(array.map(|array| self.shapes.array(array)))
            }
        }
    }

    /// Returns the array that follows from arrays; `None` by the rules of other shapes.
    fn array_by_rule(
        &mut self,
        rule: ShapeRule,
        instruction: &HloInstructionProto,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let dimensions = &instruction.dimensions;
        Ok(match rule {
            ShapeRule::Scalar(element_type) => Some(array_of(element_type, Vec::new())),
            ShapeRule::Elementwise(change) => self.elementwise(operands)?.map(|mut shape| {
                shape.element_type = change(shape.element_type);
                shape
            }),
            ShapeRule::Select => self.selected(operands)?,
            ShapeRule::Map => self.mapped(instruction, operands)?,
            ShapeRule::Concatenate => self.concatenated(operands, dimensions)?,
            ShapeRule::Transpose => self
                .array(operands, 0)?
                .and_then(|shape| transposed(&shape, dimensions)),
            ShapeRule::Broadcast => self.array(operands, 0)?.map(|shape| {
                let dimensions = [dimensions.clone(), shape.dimensions].concat();
                array_of(shape.element_type, dimensions)
            }),
            _ => None,
        })
    }

    fn selected(&mut self, operands: &[ShapeId]) -> Result<Option<ShapeProto>, GraphError> {
        let condition = self.array(operands, 0)?;
        let value = self.array(operands, 1)?;
        // One truth value may choose between whole arrays; otherwise the condition has the
        // dimensions of the result.
        Ok(condition.zip(value).map(|(mut condition, value)| {
            condition.element_type = value.element_type;
            if condition.dimensions.is_empty() {
                value
            } else {
                condition
            }
        }))
    }

    fn mapped(
        &mut self,
        instruction: &HloInstructionProto,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let Some(root) = self.result_of_callee(instruction) else {
            return Ok(None);
        };
        let root = self.shape_message(root)?;
        let first = self.array(operands, 0)?;
        Ok(first.map(|first| array_of(root.element_type, first.dimensions)))
    }

    /// Returns the shape of an operand that is an array of at most 64 dimensions.
    fn array(
        &mut self,
        operands: &[ShapeId],
        number: usize,
    ) -> Result<Option<ShapeProto>, GraphError> {
        let Some(&operand) = operands.get(number) else {
            return Ok(None);
        };
        let shape = self.shape_message(operand)?;
        let is_small_array = has_layout(shape.element_type) && shape.dimensions.len() <= MAX_RANK;
        Ok(is_small_array.then_some(shape))
    }

    /// Returns the shape of an operation on each element. An operand of one element, or of size 1, is broadcast.
    fn elementwise(&mut self, operands: &[ShapeId]) -> Result<Option<ShapeProto>, GraphError> {
        let first = self.array(operands, 0)?;
        let Some(second) = self.array(operands, 1)? else {
            return Ok(first);
        };
        Ok(first.and_then(|first| {
            // Without a broadcast, the result keeps the layout of the first operand.
            if first.dimensions == second.dimensions {
                return Some(first);
            }
            let dimensions = broadcast(&first.dimensions, &second.dimensions)?;
            Some(array_of(first.element_type, dimensions))
        }))
    }

    fn derived_element(
        &mut self,
        start: usize,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeId>, GraphError> {
        let Some(&tuple) = operands.first() else {
            return Ok(None);
        };
        let Some(position) = self.attribute_of(start, "index")? else {
            return Ok(None);
        };
        let index = self.lexer.aside(position, Lexer::number)?;
        self.element_shape(tuple, index, position).map(Some)
    }

    fn result_of_callee(&self, instruction: &HloInstructionProto) -> Option<ShapeId> {
        let callee = *instruction.called_computation_ids.first()?;
        self.pending
            .signature(callee)
            .map(|signature| signature.result)
    }

    fn concatenated(
        &mut self,
        operands: &[ShapeId],
        dimensions: &[i64],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let Some(mut whole) = self.array(operands, 0)? else {
            return Ok(None);
        };
        let along = dimensions.first().map(|&along| usize::try_from(along));
        let Some(Ok(along)) = along else {
            return Ok(None);
        };
        let Some(total) = whole.dimensions.get_mut(along) else {
            return Ok(None);
        };
        for number in 1..operands.len() {
            let part = self.array(operands, number)?;
            let Some(size) = part.and_then(|part| part.dimensions.get(along).copied()) else {
                return Ok(None);
            };
            *total = total_size(*total, size);
        }
        Ok(Some(array_of(whole.element_type, whole.dimensions)))
    }

    /// The first half of the operands are reduced, the second half are initial values.
    fn reduced(
        &mut self,
        operands: &[ShapeId],
        dimensions: &[i64],
    ) -> Result<Option<ShapeId>, GraphError> {
        let mut results = Vec::new();
        for number in 0..operands.len() / 2 {
            let Some(shape) = self.array(operands, number)? else {
                return Ok(None);
            };
            let kept = others(&shape.dimensions, dimensions);
            results.push(self.shapes.array(array_of(shape.element_type, kept)));
        }
        Ok(match results.as_slice() {
            [] => None,
            &[result] => Some(result),
            _ => Some(self.shapes.tuple(results)),
        })
    }

    /// The batch dimensions, and what is not contracted of both operands.
    fn product(
        &mut self,
        instruction: &HloInstructionProto,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let (Some(left), Some(right)) = (self.array(operands, 0)?, self.array(operands, 1)?) else {
            return Ok(None);
        };
        // Without attributes, nothing is shared or contracted.
        let none = DotDimensionNumbers::default();
        let numbers = instruction.dot_dimension_numbers.as_ref();
        let numbers = numbers.unwrap_or(&none);
        let batch = &numbers.lhs_batch_dimensions;
        let size = |&number: &i64| left.dimensions.get(usize::try_from(number).ok()?);
        let batch_sizes = batch.iter().filter_map(size).copied().collect();
        let left_named = [&batch[..], &numbers.lhs_contracting_dimensions].concat();
        let right_batch = &numbers.rhs_batch_dimensions;
        let right_named = [&right_batch[..], &numbers.rhs_contracting_dimensions].concat();
        let left_free = others(&left.dimensions, &left_named);
        let right_free = others(&right.dimensions, &right_named);
        let dimensions = [batch_sizes, left_free, right_free].concat();
        Ok(Some(array_of(left.element_type, dimensions)))
    }

    /// Returns where the value of an attribute stands, of an instruction without a shape whose opcode is at `start`.
    fn attribute_of(&mut self, start: usize, key: &str) -> Result<Option<usize>, GraphError> {
        // The text is read again, because the lexer is past the attributes and their positions are
        // not kept.
        self.lexer.aside(start, |lexer| {
            lexer.name("an opcode")?;
            lexer.skip_group()?;
            let mut position = None;
            while lexer.eat(",") {
                let found = lexer.name("an attribute")?;
                // An instruction that stands in place of an operand has no attributes, and the next
                // operand follows it.
                if !lexer.eat("=") {
                    break;
                }
                // The last one counts if it is given twice.
                if found == key {
                    position = Some(lexer.position());
                }
                lexer.skip_value()?;
            }
            Ok(position)
        })
    }
}

/// Returns the sizes of the dimensions that a list does not name.
fn others(sizes: &[i64], named: &[i64]) -> Vec<i64> {
    let others = (0..)
        .zip(sizes)
        .filter(|(number, _)| !named.contains(number));
    others.map(|(_, &size)| size).collect()
}

/// Returns the shape of an array with the default layout.
fn array_of(element_type: i32, dimensions: Vec<i64>) -> ShapeProto {
    let layout = LayoutProto {
        minor_to_major: row_major(dimensions.len()),
    };
    let layout = Some(layout).filter(|_| has_layout(element_type));
    ShapeProto {
        element_type,
        dimensions,
        layout,
        ..ShapeProto::default()
    }
}

/// Returns the dimensions to which both operands are broadcast; `None` if they do not fit.
fn broadcast(first: &[i64], second: &[i64]) -> Option<Vec<i64>> {
    // A scalar takes the dimensions of the other operand.
    if first.is_empty() || second.is_empty() {
        return Some([first, second].concat());
    }
    if first.len() != second.len() {
        return None;
    }
    let size = |(&one, &other): (&i64, &i64)| match [one, other] {
        [1 | UNBOUNDED, size] | [size, 1 | UNBOUNDED] => Some(size),
        _ => Some(one).filter(|&one| one == other),
    };
    first.iter().zip(second).map(size).collect()
}

/// Returns the shape of a transposed array, whose layout makes the transpose a bitcast.
fn transposed(shape: &ShapeProto, permutation: &[i64]) -> Option<ShapeProto> {
    let size = |&from: &i64| shape.dimensions.get(usize::try_from(from).ok()?).copied();
    // Each place of the layout names a dimension, whose new number is its position in the
    // permutation.
    let to = |from: &i64| permutation.iter().position(|dimension| dimension == from);
    let layouts = shape.layout.iter();
    let order = layouts.flat_map(|layout| &layout.minor_to_major);
    let minor_to_major = order.map(|from| i64::try_from(to(from)?).ok());
    Some(ShapeProto {
        element_type: shape.element_type,
        dimensions: permutation.iter().map(size).collect::<Option<_>>()?,
        layout: Some(LayoutProto {
            minor_to_major: minor_to_major.collect::<Option<_>>()?,
        }),
        ..ShapeProto::default()
    })
}

/// How a shape follows from the operands.
#[derive(Clone, Copy)]
pub(super) enum ShapeRule {
    /// It is that of an operand.
    Operand(usize),
    /// It has the dimensions of all operands, in the layout of the first, and an element type that follows from its own.
    Elementwise(fn(i32) -> i32),
    /// It has the layout of the condition and the element type of the second operand.
    Select,
    /// It is a scalar or token of this element type.
    Scalar(i32),
    /// It is the tuple of the operands.
    Tuple,
    /// It is that of the operand, or the tuple of the operands if there are several.
    Operands,
    /// It is an element of the first operand.
    Element,
    /// It is that of the root of the first called computation.
    Callee,
    /// It has the dimensions of the first operand and the element type of the called computation.
    Map,
    Transpose,
    Concatenate,
    Broadcast,
    Reduce,
    Dot,
}

/// Opcodes that are not elementwise, or newer than the table, whose result has the shape of the first operand.
const SAME_SHAPE: [&str; 14] = [
    "acos",
    "acosh",
    "add-dependency",
    "asin",
    "asinh",
    "atanh",
    "cholesky",
    "cosh",
    "domain",
    "reverse",
    "select-and-scatter",
    "set-dimension-size",
    "sinh",
    "while",
];

/// Returns how XLA derives the shape of an instruction; `None` if it, or this reader, does not.
pub(super) fn rule(opcode: &str) -> Option<ShapeRule> {
    Some(match opcode {
        same if SAME_SHAPE.contains(&same) => ShapeRule::Operand(0),
        "mulhi" => ShapeRule::Elementwise(|element_type| element_type),
        "abs" | "real" | "imag" => ShapeRule::Elementwise(real_of),
        "complex" => ShapeRule::Elementwise(complex_of),
        "compare" | "is-finite" => ShapeRule::Elementwise(|_| PRED),
        // The first operand of a clamp may be a scalar, and that of a triangular solve is the
        // matrix.
        "clamp" | "triangular-solve" => ShapeRule::Operand(1),
        "select" => ShapeRule::Select,
        "after-all" => ShapeRule::Scalar(TOKEN),
        "replica-id" | "partition-id" => ShapeRule::Scalar(U32),
        "get-dimension-size" => ShapeRule::Scalar(S32),
        "tuple" => ShapeRule::Tuple,
        // A sort of several arrays has a tuple of them as its result.
        "sort" => ShapeRule::Operands,
        "get-tuple-element" => ShapeRule::Element,
        "call" | "conditional" => ShapeRule::Callee,
        "map" => ShapeRule::Map,
        "transpose" => ShapeRule::Transpose,
        "concatenate" => ShapeRule::Concatenate,
        "broadcast" => ShapeRule::Broadcast,
        "reduce" => ShapeRule::Reduce,
        "dot" => ShapeRule::Dot,
        "convert" => return None,
        _ if is_elementwise(opcode) => match least_operands(opcode_id(opcode)) {
            2 => ShapeRule::Elementwise(|element_type| element_type),
            _ => ShapeRule::Operand(0),
        },
        _ => return None,
    })
}
