use hlorank_proto::xla::HloInstructionProto;

use super::{computation::Computation, module::Parser, shapes::ShapeId};
use crate::{GraphError, TextError, module::Origin, shortened, syntax::shape_if_next};

impl<'a> Parser<'a, '_> {
    /// Reads operands in parentheses, and returns their positions.
    pub(super) fn operands(
        &mut self,
        computation: &mut Computation<'a>,
    ) -> Result<Vec<i64>, GraphError> {
        self.lexer.expect("(")?;
        let mut ids = Vec::new();
        while !self.lexer.eat(")") {
            self.count_reference()?;
            let position = self.operand(computation)?;
            ids.push(computation.instruction_id(position));
            if !self.lexer.eat(",") {
                self.lexer.expect(")")?;
                break;
            }
        }
        Ok(ids)
    }

    /// Reads `shape name`, `name#1#0` or a whole instruction without attributes, such as `f32[] constant(1)`. Shapes of
    /// named operands are optional.
    fn operand(&mut self, computation: &mut Computation<'a>) -> Result<usize, GraphError> {
        let start = self.lexer.position();
        if self.lexer.next_byte() != b'%' {
            shape_if_next(&mut self.lexer)?;
        }
        let name_start = self.lexer.position();
        let name = self.lexer.name("an operand")?;
        if self.lexer.peek() == b'(' {
            self.lexer.return_to(start);
            return self.nested(computation);
        }
        let position = self.position_of(name, name_start, computation)?;
        if self.lexer.peek() == b'#' {
            self.elements(name, position, computation)
        } else {
            Ok(position)
        }
    }

    /// Reads an instruction in place of an operand. It stands before its user, as in XLA.
    fn nested(&mut self, computation: &mut Computation<'a>) -> Result<usize, GraphError> {
        self.enter()?;
        self.definition(None, computation)?;
        self.depth -= 1;
        Ok(computation.nodes.len() - 1)
    }

    /// Reads the indices of `%while#1#0`, a short form of get-tuple-element, and returns the position of the element.
    fn elements(
        &mut self,
        name: &str,
        mut position: usize,
        computation: &mut Computation<'a>,
    ) -> Result<usize, GraphError> {
        let mut name = name.to_owned();
        while self.lexer.eat("#") {
            let start = self.lexer.position();
            let index = self.lexer.number()?;
            let key = (position, index);
            name = format!("{name}_{index}");
            position = match computation.elements.get(&key) {
                Some(&element) => element,
                None => self.element(&name, [position, start], index, computation)?,
            };
            computation.elements.insert(key, position);
        }
        Ok(position)
    }

    /// Adds the get-tuple-element that reads an element of the instruction at `position`.
    fn element(
        &mut self,
        name: &str,
        [position, start]: [usize; 2],
        index: i64,
        computation: &mut Computation<'a>,
    ) -> Result<usize, GraphError> {
        let shape = self.element_shape(computation.shapes[position], index, start)?;
        self.count_node()?;
        self.count_reference()?;
        let element = HloInstructionProto {
            name: name.to_owned(),
            opcode: "get-tuple-element".to_owned(),
            shape: Some(self.shapes.message(shape, &mut self.lexer)?),
            operand_ids: vec![computation.instruction_id(position)],
            ..HloInstructionProto::default()
        };
        let origin = Origin::implied(&element);
        self.push(&element, shape, origin, computation);
        Ok(computation.nodes.len() - 1)
    }

    /// Returns the shape of an element of a tuple. Errors stand at `start`.
    pub(super) fn element_shape(
        &mut self,
        tuple: ShapeId,
        index: i64,
        start: usize,
    ) -> Result<ShapeId, GraphError> {
        let elements = self
            .shapes
            .elements(tuple, &mut self.lexer)?
            .unwrap_or_default();
        let element = usize::try_from(index)
            .ok()
            .and_then(|index| elements.get(index))
            .copied();
        let elements = elements.len();
        element.ok_or_else(|| {
            self.lexer
                .error(start, TextError::NoElement { index, elements })
        })
    }

    /// Reads the name of an earlier instruction and returns its position.
    pub(super) fn earlier(
        &mut self,
        computation: &Computation<'a>,
        expected: &str,
    ) -> Result<usize, GraphError> {
        let start = self.lexer.position();
        let name = self.lexer.name(expected)?;
        self.position_of(name, start, computation)
    }

    fn position_of(
        &self,
        name: &str,
        start: usize,
        computation: &Computation<'a>,
    ) -> Result<usize, GraphError> {
        let position = computation.positions.get(name).copied();
        position.ok_or_else(|| {
            self.lexer.error(
                start,
                TextError::UnknownOperand {
                    name: shortened(name),
                },
            )
        })
    }
}
