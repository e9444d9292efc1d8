use hlorank_proto::xla::HloInstructionProto;

use super::{
    asynchronous::Asynchronous,
    attributes::attribute,
    computation::Computation,
    lexer::Lexer,
    module::Parser,
    shape::{shape, skip_shape},
};
use crate::{GraphError, TextError, module::Origin, shortened};

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

/// Reads name, shape and opcode of an instruction from its text; `None` if the text is no instruction.
pub(crate) fn head(instruction: &str) -> Option<HloInstructionProto> {
    let mut lexer = Lexer::new(instruction);
    let (name, mut instruction) = read_head(&mut lexer).ok()?;
    name.clone_into(&mut instruction.name);
    Some(instruction)
}

/// Reads `%name = shape opcode`. The name is not copied.
fn read_head<'a>(lexer: &mut Lexer<'a>) -> Result<(&'a str, HloInstructionProto), GraphError> {
    let name = lexer.name("an instruction")?;
    lexer.expect("=")?;
    let shape = Some(shape(lexer)?);
    let opcode = lexer.name("an opcode")?.to_owned();
    Ok((name, HloInstructionProto { shape, opcode, ..HloInstructionProto::default() }))
}

impl<'a> Parser<'a, '_> {
    /// Reads `ROOT %name = shape opcode(operands), attributes`.
    pub(super) fn instruction(&mut self, computation: &mut Computation<'a>) -> Result<(), GraphError> {
        self.count_node()?;
        let is_root = self.root();
        let start = self.lexer.position();
        let (name, mut instruction) = read_head(&mut self.lexer)?;
        let asynchronous = Asynchronous::of(&mut instruction);
        set_defaults(&mut instruction);
        self.operands(&mut instruction, computation)?;
        self.attributes(&mut instruction, computation)?;
        let origin = Origin::Text(self.lexer.since(start));
        if let Some(asynchronous) = asynchronous {
            instruction = self.unfold(&asynchronous, instruction, start)?;
        }
        if computation.nodes.push(&instruction, false, origin) == 0 {
            self.builder.count_unknown(&instruction.opcode);
        }
        computation.register(name, is_root).map_err(|error| self.lexer.error(start, error))
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

    fn operands(
        &mut self,
        instruction: &mut HloInstructionProto,
        computation: &Computation<'a>,
    ) -> Result<(), GraphError> {
        if self.lexer.peek() != b'(' {
            return Err(self.lexer.unexpected("`(`"));
        }
        if instruction.opcode == "constant" {
            return self.lexer.skip_group();
        }
        self.lexer.expect("(")?;
        if instruction.opcode == "parameter" {
            instruction.parameter_number = self.lexer.number()?;
            return self.lexer.expect(")");
        }
        while !self.lexer.eat(")") {
            skip_shape(&mut self.lexer)?;
            self.count_reference()?;
            let position = self.earlier(computation, "an operand")?;
            instruction.operand_ids.push(computation.instruction_id(position));
            if !self.lexer.eat(",") {
                return self.lexer.expect(")");
            }
        }
        Ok(())
    }

    /// Reads the name of an earlier instruction and returns its position.
    fn earlier(&mut self, computation: &Computation<'a>, expected: &str) -> Result<usize, GraphError> {
        let start = self.lexer.position();
        let name = self.lexer.name(expected)?;
        let position = computation.positions.get(name).copied();
        position.ok_or_else(|| self.lexer.error(start, TextError::UnknownOperand { name: shortened(name) }))
    }

    fn attributes(
        &mut self,
        instruction: &mut HloInstructionProto,
        computation: &mut Computation<'a>,
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

    fn predecessors(&mut self, computation: &mut Computation<'a>) -> Result<(), GraphError> {
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
        computation.predecessors.entry(computation.nodes.len()).or_default().extend(predecessors);
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
        let start = self.lexer.position();
        self.lexer.eat("{");
        self.root();
        self.lexer.eat("%");
        let holds = !self.lexer.word().is_empty() && self.lexer.eat("=");
        self.lexer.return_to(start);
        holds
    }
}

/// Sets the values that XLA gives to attributes that the text leaves out.
pub(super) fn set_defaults(instruction: &mut HloInstructionProto) {
    if matches!(instruction.opcode.as_str(), "convolution" | "custom-call") {
        instruction.feature_group_count = 1;
        instruction.batch_group_count = 1;
    }
}
