//! Shapes that the text leaves out and that follow from those of operands, as XLA's parser derives them.

use hlorank_proto::xla::{HloInstructionProto, LayoutProto, ShapeProto};

use super::{computation::Computation, module::Parser, shapes::ShapeId};
use crate::{
    GraphError, TextError, shortened,
    syntax::{Lexer, PRED, S32, TOKEN, U32, UNBOUNDED, complex_of, has_layout, real_of, row_major},
};

/// Maximum rank of a derived array, so that a short line does not take the time of a long list of dimensions.
const MAX_RANK: usize = 64;

/// How a shape follows from the operands.
#[derive(Clone, Copy)]
enum Rule {
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

/// Opcodes of two operands whose result has their element type.
const SAME_TYPE: [&str; 16] = [
    "add",
    "and",
    "atan2",
    "divide",
    "maximum",
    "minimum",
    "mulhi",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "subtract",
    "xor",
];

/// Opcodes whose result has the shape of the first operand.
const SAME_SHAPE: [&str; 37] = [
    "acos",
    "acosh",
    "add-dependency",
    "asin",
    "asinh",
    "atanh",
    "cbrt",
    "ceil",
    "cholesky",
    "copy",
    "cosh",
    "cosine",
    "count-leading-zeros",
    "domain",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "negate",
    "not",
    "popcnt",
    "reverse",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "select-and-scatter",
    "set-dimension-size",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "while",
];

/// Returns how XLA derives the shape of an instruction; `None` if it, or this reader, does not.
fn rule(opcode: &str) -> Option<Rule> {
    Some(match opcode {
        same if SAME_SHAPE.contains(&same) => Rule::Operand(0),
        same if SAME_TYPE.contains(&same) => Rule::Elementwise(|element_type| element_type),
        "abs" | "real" | "imag" => Rule::Elementwise(real_of),
        "complex" => Rule::Elementwise(complex_of),
        "compare" | "is-finite" => Rule::Elementwise(|_| PRED),
        "clamp" | "triangular-solve" => Rule::Operand(1),
        "select" => Rule::Select,
        "after-all" => Rule::Scalar(TOKEN),
        "replica-id" | "partition-id" => Rule::Scalar(U32),
        "get-dimension-size" => Rule::Scalar(S32),
        "tuple" => Rule::Tuple,
        "sort" => Rule::Operands,
        "get-tuple-element" => Rule::Element,
        "call" | "conditional" => Rule::Callee,
        "map" => Rule::Map,
        "transpose" => Rule::Transpose,
        "concatenate" => Rule::Concatenate,
        "broadcast" => Rule::Broadcast,
        "reduce" => Rule::Reduce,
        "dot" => Rule::Dot,
        _ => return None,
    })
}

/// Returns whether the shape of an instruction may be left out.
pub(super) fn has_derived_shape(opcode: &str) -> bool {
    rule(opcode).is_some()
}

impl<'a> Parser<'a, '_> {
    /// Gives an instruction the shape that follows from its operands. The instruction begins at `start`.
    pub(super) fn derive_shape(
        &mut self,
        instruction: &mut HloInstructionProto,
        start: usize,
        computation: &Computation<'a>,
    ) -> Result<ShapeId, GraphError> {
        let operands: Vec<ShapeId> = Computation::positions_of(&instruction.operand_ids)
            .map(|position| computation.shapes[position])
            .collect();
        let opcode = shortened(&instruction.opcode);
        let shape = self.shape_by_rule(instruction, start, &operands)?;
        let shape = shape.ok_or_else(|| self.lexer.error(start, TextError::NoShape { opcode }))?;
        instruction.shape = Some(self.shapes.message(shape, &mut self.lexer)?);
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
            Some(Rule::Operand(number)) => Ok(operands.get(number).copied()),
            Some(Rule::Operands) if operands.len() == 1 => Ok(Some(operands[0])),
            Some(Rule::Operands | Rule::Tuple) => Ok(Some(self.shapes.tuple(operands.to_vec()))),
            Some(Rule::Element) => self.derived_element(start, operands),
            Some(Rule::Callee) => Ok(self.result_of_callee(instruction)),
            Some(Rule::Reduce) => self.reduced(operands, &instruction.dimensions),
            Some(Rule::Dot) => {
                let array = self.product(start, operands)?;
                Ok(self.known(array))
            }
            Some(rule) => {
                let array = self.array_by_rule(rule, instruction, operands)?;
                Ok(self.known(array))
            }
        }
    }

    fn known(&mut self, array: Option<ShapeProto>) -> Option<ShapeId> {
        let array = array.filter(|shape| shape.dimensions.len() <= MAX_RANK);
        array.map(|shape| self.shapes.array(shape))
    }

    /// Returns the array that follows from arrays; `None` by the rules of other shapes.
    fn array_by_rule(
        &mut self,
        rule: Rule,
        instruction: &HloInstructionProto,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let dimensions = &instruction.dimensions;
        Ok(match rule {
            Rule::Scalar(element_type) => Some(array_of(element_type, Vec::new())),
            Rule::Elementwise(change) => self.elementwise(operands)?.map(|mut shape| {
                shape.element_type = change(shape.element_type);
                shape
            }),
            Rule::Select => self.selected(operands)?,
            Rule::Map => self.mapped(instruction, operands)?,
            Rule::Concatenate => self.concatenated(operands, dimensions)?,
            Rule::Transpose => {
                let shape = self.array(operands, 0)?;
                shape.and_then(|shape| transposed(&shape, dimensions))
            }
            Rule::Broadcast => self.array(operands, 0)?.map(|shape| {
                let dimensions = [dimensions.clone(), shape.dimensions].concat();
                array_of(shape.element_type, dimensions)
            }),
            _ => None,
        })
    }

    fn selected(&mut self, operands: &[ShapeId]) -> Result<Option<ShapeProto>, GraphError> {
        let condition = self.array(operands, 0)?;
        let value = self.array(operands, 1)?;
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
        let root = self.shapes.message(root, &mut self.lexer)?;
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
        let shape = self.shapes.message(operand, &mut self.lexer)?;
        Ok(Some(shape)
            .filter(|shape| has_layout(shape.element_type) && shape.dimensions.len() <= MAX_RANK))
    }

    /// Returns the shape of an operation on each element. An operand of one element, or of size 1, is broadcast.
    fn elementwise(&mut self, operands: &[ShapeId]) -> Result<Option<ShapeProto>, GraphError> {
        let first = self.array(operands, 0)?;
        let Some(second) = self.array(operands, 1)? else {
            return Ok(first);
        };
        Ok(first.and_then(|first| {
            if first.dimensions == second.dimensions {
                return Some(first);
            }
            Some(array_of(
                first.element_type,
                broadcast(&first.dimensions, &second.dimensions)?,
            ))
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
        let dimension = dimensions
            .first()
            .and_then(|&dimension| usize::try_from(dimension).ok());
        let Some(dimension) = dimension.filter(|&dimension| dimension < whole.dimensions.len())
        else {
            return Ok(None);
        };
        for number in 1..operands.len() {
            let part = self
                .array(operands, number)?
                .and_then(|part| part.dimensions.get(dimension).copied());
            let Some(size) = part else { return Ok(None) };
            whole.dimensions[dimension] = whole.dimensions[dimension].wrapping_add(size);
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
            let kept = (0..)
                .zip(shape.dimensions)
                .filter(|(number, _)| !dimensions.contains(number));
            let kept = kept.map(|(_, size)| size).collect();
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
        start: usize,
        operands: &[ShapeId],
    ) -> Result<Option<ShapeProto>, GraphError> {
        let (Some(left), Some(right)) = (self.array(operands, 0)?, self.array(operands, 1)?) else {
            return Ok(None);
        };
        let left_batch = self.numbers_of(start, "lhs_batch_dims")?;
        let left_contracted = self.numbers_of(start, "lhs_contracting_dims")?;
        let right_batch = self.numbers_of(start, "rhs_batch_dims")?;
        let right_contracted = self.numbers_of(start, "rhs_contracting_dims")?;
        let batch = left_batch
            .iter()
            .filter_map(|&number| left.dimensions.get(usize::try_from(number).ok()?));
        let mut dimensions: Vec<i64> = batch.copied().collect();
        let mut add_rest = |shape: &ShapeProto, gone: [&[i64]; 2]| {
            let gone = gone.concat();
            for (number, &size) in (0..).zip(&shape.dimensions) {
                if !gone.contains(&number) {
                    dimensions.push(size);
                }
            }
        };
        add_rest(&left, [&left_batch, &left_contracted]);
        add_rest(&right, [&right_batch, &right_contracted]);
        Ok(Some(array_of(left.element_type, dimensions)))
    }

    fn numbers_of(&mut self, start: usize, key: &str) -> Result<Vec<i64>, GraphError> {
        let Some(position) = self.attribute_of(start, key)? else {
            return Ok(Vec::new());
        };
        self.lexer.aside(position, |lexer| {
            lexer.expect("{")?;
            lexer.list("}", Lexer::number)
        })
    }

    /// Returns where the value of an attribute stands, of an instruction without a shape whose opcode is at `start`.
    fn attribute_of(&mut self, start: usize, key: &str) -> Result<Option<usize>, GraphError> {
        self.lexer.aside(start, |lexer| {
            lexer.name("an opcode")?;
            lexer.skip_group()?;
            while lexer.eat(",") {
                let found = lexer.name("an attribute")?;
                lexer.expect("=")?;
                if found == key {
                    return Ok(Some(lexer.position()));
                }
                lexer.skip_value()?;
            }
            Ok(None)
        })
    }
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
    if first.is_empty() || second.is_empty() {
        return Some([first, second].concat());
    }
    let size = |(&one, &other): (&i64, &i64)| match [one, other] {
        [1 | UNBOUNDED, size] | [size, 1 | UNBOUNDED] => Some(size),
        _ => Some(one).filter(|&one| one == other),
    };
    let fits = first.len() == second.len();
    first
        .iter()
        .zip(second)
        .map(size)
        .collect::<Option<Vec<i64>>>()
        .filter(|_| fits)
}

/// Returns the shape of a transposed array, whose layout makes the transpose a bitcast.
fn transposed(shape: &ShapeProto, permutation: &[i64]) -> Option<ShapeProto> {
    let size = |&from: &i64| shape.dimensions.get(usize::try_from(from).ok()?).copied();
    let dimensions = permutation.iter().map(size).collect::<Option<Vec<i64>>>()?;
    let to = |from: &i64| permutation.iter().position(|dimension| dimension == from);
    let order = shape
        .layout
        .iter()
        .flat_map(|layout| &layout.minor_to_major);
    let minor_to_major = order
        .map(|from| i64::try_from(to(from)?).ok())
        .collect::<Option<Vec<i64>>>()?;
    let layout = Some(LayoutProto { minor_to_major });
    Some(ShapeProto {
        element_type: shape.element_type,
        dimensions,
        layout,
        ..ShapeProto::default()
    })
}
