use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use super::{computation::Computation, module::Parser, shape::shape};
use crate::{GraphError, module::Origin, opcode::opcode_id};

/// A short form that XLA prints: `slice-start(%x), slice={[0:2]}` stands for an `async-start` that calls a computation
/// of one `slice`, and `slice-done` for its `async-done`.
pub(super) enum Asynchronous {
    /// The start, which holds the operation.
    Start,
    /// An intermediate step.
    Update,
    /// The end.
    Done,
}

impl Asynchronous {
    /// Recognizes a short form by an opcode that XLA does not have, and reduces it to the opcode of the operation.
    pub(super) fn of(instruction: &mut HloInstructionProto) -> Option<Self> {
        if opcode_id(&instruction.opcode) != 0 {
            return None;
        }
        let forms = [("-start", Self::Start), ("-update", Self::Update), ("-done", Self::Done)];
        let (ending, form) = forms.into_iter().find(|(ending, _)| instruction.opcode.ends_with(ending))?;
        instruction.opcode.truncate(instruction.opcode.len() - ending.len());
        Some(form)
    }

    fn opcode(&self) -> &'static str {
        match self {
            Self::Start => "async-start",
            Self::Update => "async-update",
            Self::Done => "async-done",
        }
    }
}

impl Parser<'_, '_> {
    /// Returns the instruction that a short form stands for, and adds the computation that it calls to the module.
    /// `operation` has the operands and the shape of that instruction, and the attributes of the operation inside.
    pub(super) fn unfold(
        &mut self,
        form: &Asynchronous,
        operation: HloInstructionProto,
        start: usize,
    ) -> Result<HloInstructionProto, GraphError> {
        let mut whole = HloInstructionProto {
            opcode: form.opcode().to_owned(),
            shape: operation.shape.clone(),
            operand_ids: operation.operand_ids.clone(),
            ..HloInstructionProto::default()
        };
        if let Asynchronous::Start = form {
            self.count_reference()?;
            whole.called_computation_ids = vec![self.wrap(operation, start)?];
        }
        Ok(whole)
    }

    /// Adds a computation that applies one operation to its parameters, and returns its id.
    fn wrap(&mut self, mut operation: HloInstructionProto, start: usize) -> Result<i64, GraphError> {
        let origin = Origin::Text(self.lexer.since(start));
        let (parameters, result) = self.shapes_inside(start)?;
        let mut computation = Computation::new(self.callees.unnamed());
        operation.operand_ids.clear();
        for (number, shape) in (0..).zip(parameters) {
            self.count_node()?;
            self.count_reference()?;
            operation.operand_ids.push(computation.instruction_id(computation.nodes.len()));
            computation.nodes.push(&parameter(number, shape), false, origin);
        }
        self.count_node()?;
        operation.shape = Some(result);
        if computation.nodes.push(&operation, false, origin) == 0 {
            self.builder.count_unknown(&operation.opcode);
        }
        let id = computation.id;
        computation.close("", &mut self.builder)?;
        Ok(id)
    }

    /// Reads the shapes of operands and result in `((operands), result, ...)`, the shape of the instruction at `start`.
    fn shapes_inside(&mut self, start: usize) -> Result<(Vec<ShapeProto>, ShapeProto), GraphError> {
        let end = self.lexer.position();
        self.lexer.return_to(start);
        self.lexer.name("an instruction")?;
        ["=", "(", "("].into_iter().try_for_each(|symbol| self.lexer.expect(symbol))?;
        let operands = self.lexer.list(")", shape)?;
        self.lexer.expect(",")?;
        let result = shape(&mut self.lexer)?;
        self.lexer.return_to(end);
        Ok((operands, result))
    }
}

fn parameter(number: i64, shape: ShapeProto) -> HloInstructionProto {
    HloInstructionProto {
        opcode: "parameter".to_owned(),
        parameter_number: number,
        shape: Some(shape),
        ..HloInstructionProto::default()
    }
}
