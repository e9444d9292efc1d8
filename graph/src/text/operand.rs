use hlorank_proto::xla::HloInstructionProto;

use super::{computation::Computation, module::Parser, shapes::ShapeId};
use crate::{GraphError, TextError, shortened, syntax::shape_if_next};

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
        // The shape of an operand is that of the instruction it names, so it is read over. A `%`
        // begins a name.
        if self.lexer.next_byte() != b'%' {
            shape_if_next(&mut self.lexer)?;
        }
        let name_start = self.lexer.position();
        let name = self.lexer.name("an operand")?;
        // A bracket follows an opcode but no name, so what was read is the start of an instruction.
        if self.lexer.peek() == b'(' {
            self.lexer.return_to(start);
            // It stands before its user, as in XLA.
            self.enter()?;
            self.definition(None, computation)?;
            self.depth -= 1;
            return Ok(computation.nodes.len() - 1);
        }
        let position = self.position_of(name, name_start, computation)?;
        if self.lexer.peek() == b'#' {
            self.elements(name, position, computation)
        } else {
            Ok(position)
        }
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
            // As XLA names it.
            name = format!("{name}_{index}");
            let tuple = position;
            if let Some(&known) = computation.elements.get(&(tuple, index)) {
                position = known;
                continue;
            }
            // The get-tuple-element that reads the element is added at the first use.
            let shape = self.element_shape(computation.shapes[tuple], index, start)?;
            position = computation.nodes.len();
            self.count_node()?;
            self.count_reference()?;
            let instruction = HloInstructionProto {
                name: name.clone(),
                opcode: "get-tuple-element".to_owned(),
                shape: Some(self.implied_shape(shape)?.as_ref().clone()),
                operand_ids: vec![computation.instruction_id(tuple)],
                ..HloInstructionProto::default()
            };
            self.push_implied(&instruction, shape, computation)?;
            computation.elements.insert((tuple, index), position);
        }
        Ok(position)
    }

    /// Returns the shape of an element of a tuple. Errors stand at `start`.
    pub(super) fn element_shape(
        &mut self,
        tuple: ShapeId,
        index: i64,
        start: usize,
    ) -> Result<ShapeId, GraphError> {
        // What is no tuple has no elements, and the error says so.
        let elements = self.shapes.elements(tuple, &mut self.lexer)?;
        let elements = elements.unwrap_or_default();
        if let Ok(position) = usize::try_from(index)
            && let Some(&element) = elements.get(position)
        {
            return Ok(element);
        }
        let elements = elements.len();
        let missing = TextError::NoElement { index, elements };
        Err(self.lexer.error(start, missing))
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
            let name = shortened(name);
            self.lexer.error(start, TextError::UnknownOperand { name })
        })
    }
}
