use hlorank_proto::xla::HloInstructionProto;

use super::{
    asynchronous::{Asynchronous, StepPlace},
    attributes::{attribute, keep_dimensions, set_defaults},
    computation::ParsedComputation,
    derived_shape::rule,
    module::Parser,
    shapes::ShapeId,
};
use crate::{
    GraphError, TextError,
    module::{Origin, check_instruction},
    opcode::opcode_id,
    shortened,
    syntax::shape_if_next,
};

/// Attributes whose values are computations or their names.
const CALLEES: [&str; 10] = [
    "to_apply",
    "calls",
    "called_computations",
    "condition",
    "body",
    "branch_computations",
    "true_computation",
    "false_computation",
    "select",
    "scatter",
];

/// The name of an instruction, and where it begins in the text.
#[derive(Clone, Copy)]
struct Name<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Parser<'a, '_> {
    /// Reads `ROOT %name = shape opcode(operands), attributes`.
    pub(super) fn instruction(
        &mut self,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<(), GraphError> {
        let is_root = self.root();
        let start = self.lexer.position();
        let text = self.lexer.name("an instruction")?;
        self.lexer.expect("=")?;
        self.definition(Some(Name { text, start }), computation)?;
        // The name is registered after the operands are read, so that an instruction cannot be its
        // own operand.
        computation
            .register(text, is_root)
            .map_err(|error| self.lexer.error(start, error))
    }

    /// Reads `shape opcode(operands), attributes` and adds the instruction. An instruction in place of an operand has
    /// neither a name nor attributes.
    fn definition(
        &mut self,
        name: Option<Name<'a>>,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<(), GraphError> {
        self.count_node()?;
        let start = self.lexer.position();
        let (written, shape) = self.shapes.read(&mut self.lexer)?.unzip();
        let opcode_start = self.lexer.position();
        let opcode = self.lexer.name("an opcode")?;
        // Only the shapes of some instructions may be left out.
        if written.is_none() && rule(opcode).is_none() {
            self.lexer.return_to(opcode_start);
            return Err(self.lexer.unexpected("a shape"));
        }
        let mut instruction = HloInstructionProto {
            opcode: opcode.to_owned(),
            shape,
            ..HloInstructionProto::default()
        };
        let form = Asynchronous::parse(&mut instruction);
        // The defaults are those of the operation inside a short form, and attributes of the text
        // overwrite them.
        set_defaults(&mut instruction);
        self.arguments(&mut instruction, form.is_some(), computation)?;
        if name.is_some() {
            self.attributes(&mut instruction, computation)?;
        }
        // The shape can follow from attributes and callees, so it is derived after these are read.
        let shape = match written {
            Some(shape) => shape,
            None => self.derive_shape(&mut instruction, start, computation)?,
        };
        keep_dimensions(&mut instruction);
        if let Some(form) = &form {
            let place = StepPlace { shape, start };
            instruction = self.unfold(form, instruction, place, computation)?;
        }
        // XLA keeps no references of later steps of an asynchronous operation to its computation, to
        // which only the first step refers, and no operands of the last step but the step before it.
        match instruction.opcode.as_str() {
            "async-update" => instruction.called_computation_ids.clear(),
            "async-done" => {
                instruction.called_computation_ids.clear();
                instruction.operand_ids.truncate(1);
            }
            _ => {}
        }
        // The text of a short form has another opcode than the instruction that it stands for.
        let written = written.filter(|_| form.is_none());
        let origin = self.origin(name, written, shape, &mut instruction)?;
        let name = name.unwrap_or(Name { text: "", start });
        check_instruction(&instruction, opcode_id(&instruction.opcode)).map_err(|fault| {
            let invalid = TextError::InvalidInstruction {
                name: shortened(name.text),
                opcode: shortened(&instruction.opcode),
                fault: Box::new(fault),
            };
            self.lexer.error(name.start, invalid)
        })?;
        self.push(&instruction, shape, origin, computation);
        Ok(())
    }

    /// Returns from where name, shape and opcode can be read again: from the text, if all of them are there in full.
    fn origin(
        &mut self,
        name: Option<Name<'a>>,
        written: Option<ShapeId>,
        shape: ShapeId,
        instruction: &mut HloInstructionProto,
    ) -> Result<Origin<'a>, GraphError> {
        match (name, written) {
            (Some(name), Some(_)) => return Ok(Origin::Text(self.lexer.since(name.start))),
            (Some(name), None) => name.text.clone_into(&mut instruction.name),
            // As XLA names it.
            (None, _) => instruction.name = format!("{}.anon", instruction.opcode),
        }
        self.implied(instruction, shape)
    }

    fn implied(
        &mut self,
        instruction: &HloInstructionProto,
        shape: ShapeId,
    ) -> Result<Origin<'a>, GraphError> {
        let shape = self.shapes.shared(shape, &mut self.lexer)?;
        Ok(Origin::implied(instruction, shape))
    }

    /// Adds an instruction to its computation.
    pub(super) fn push(
        &mut self,
        instruction: &HloInstructionProto,
        shape: ShapeId,
        origin: Origin<'a>,
        computation: &mut ParsedComputation<'a>,
    ) {
        if computation.nodes.push(instruction, false, origin) == 0 {
            self.builder.count_unknown(&instruction.opcode);
        }
        if instruction.opcode == "parameter" {
            computation
                .parameters
                .push((instruction.parameter_number, shape));
        }
        computation.shapes.push(shape);
    }

    /// Adds an instruction that the text only implies.
    pub(super) fn push_implied(
        &mut self,
        instruction: &HloInstructionProto,
        shape: ShapeId,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<(), GraphError> {
        let origin = self.implied(instruction, shape)?;
        self.push(instruction, shape, origin, computation);
        Ok(())
    }

    /// Reads `ROOT` if it marks the next instruction. An instruction may be named `ROOT` too.
    fn root(&mut self) -> bool {
        let start = self.lexer.position();
        let is_root = self.lexer.word() == "ROOT" && self.lexer.peek() != b'=';
        if !is_root {
            self.lexer.return_to(start);
        }
        is_root
    }

    /// Reads what stands in parentheses: operands, the number of a parameter or the value of a constant.
    fn arguments(
        &mut self,
        instruction: &mut HloInstructionProto,
        is_asynchronous: bool,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<(), GraphError> {
        if self.lexer.peek() != b'(' {
            return Err(self.lexer.unexpected("`(`"));
        }
        // A step of an asynchronous operation has operands in its parentheses, whatever the
        // operation is.
        match instruction.opcode.as_str() {
            // A value affects no feature, and may be megabytes long.
            "constant" if !is_asynchronous => self.lexer.skip_group()?,
            "parameter" if !is_asynchronous => {
                self.lexer.expect("(")?;
                instruction.parameter_number = self.lexer.number()?;
                self.lexer.expect(")")?;
            }
            _ => instruction.operand_ids = self.operands(computation)?,
        }
        Ok(())
    }

    fn attributes(
        &mut self,
        instruction: &mut HloInstructionProto,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<(), GraphError> {
        while self.lexer.eat(",") {
            let key = self.attribute_key()?;
            if CALLEES.contains(&key) {
                self.callees(&mut instruction.called_computation_ids)?;
            } else if key == "control-predecessors" {
                self.predecessors(computation)?;
            } else {
                attribute(&mut self.lexer, key, instruction)?;
            }
        }
        Ok(())
    }

    /// Reads control predecessors, which are no operands but come earlier in the order of the
    /// module.
    fn predecessors(&mut self, computation: &mut ParsedComputation<'a>) -> Result<(), GraphError> {
        self.lexer.expect("{")?;
        let mut predecessors = Vec::new();
        while !self.lexer.eat("}") {
            self.count_predecessor()?;
            predecessors.push(self.earlier(computation, "an instruction")?);
            if !self.lexer.eat(",") {
                self.lexer.expect("}")?;
                break;
            }
        }
        // The instruction is not added yet, so its position is the number of those before it.
        computation
            .predecessors
            .entry(computation.nodes.len())
            .or_default()
            .extend(predecessors);
        Ok(())
    }

    /// Reads a computation, its name, or several of them in braces.
    fn callees(&mut self, ids: &mut Vec<i64>) -> Result<(), GraphError> {
        if self.lexer.peek() != b'{' || self.holds_instructions() {
            return self.callee(ids);
        }
        self.lexer.expect("{")?;
        while !self.lexer.eat("}") {
            self.callee(ids)?;
            if !self.lexer.eat(",") {
                return self.lexer.expect("}");
            }
        }
        Ok(())
    }

    fn callee(&mut self, ids: &mut Vec<i64>) -> Result<(), GraphError> {
        self.count_reference()?;
        if self.lexer.peek() == b'{' {
            let id = self.callees.unnamed();
            ids.push(id);
            return self.body("", id);
        }
        let position = self.lexer.position();
        let name = self.lexer.name("a computation")?;
        ids.push(self.callees.named(name, position));
        Ok(())
    }

    /// Returns whether the next brace opens a computation, which means that an instruction follows it.
    fn holds_instructions(&mut self) -> bool {
        // Names of computations in braces look alike up to the `=` that follows the name of an
        // instruction.
        let start = self.lexer.position();
        self.lexer.eat("{");
        self.root();
        self.lexer.eat("%");
        let holds = !self.lexer.word().is_empty() && self.lexer.eat("=");
        self.lexer.return_to(start);
        holds
    }
}

impl<'a> Parser<'a, '_> {
    /// Reads operands in parentheses, and returns their positions.
    pub(super) fn operands(
        &mut self,
        computation: &mut ParsedComputation<'a>,
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
    fn operand(&mut self, computation: &mut ParsedComputation<'a>) -> Result<usize, GraphError> {
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
        computation: &mut ParsedComputation<'a>,
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
                shape: Some(self.implied_shape(shape)?),
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
    fn earlier(
        &mut self,
        computation: &ParsedComputation<'a>,
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
        computation: &ParsedComputation<'a>,
    ) -> Result<usize, GraphError> {
        let position = computation.positions.get(name).copied();
        position.ok_or_else(|| {
            let name = shortened(name);
            self.lexer.error(start, TextError::UnknownOperand { name })
        })
    }
}
