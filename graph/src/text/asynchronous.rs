use hlorank_proto::xla::HloInstructionProto;

use super::{
    computation::Computation,
    module::Parser,
    pending::{Signature, Wrapped},
    shapes::ShapeId,
};
use crate::{GraphError, opcode::opcode_id};

/// A short form that XLA prints: `slice-start(%x), slice={[0:2]}` stands for an `async-start` that calls a computation
/// of one `slice`, and `slice-done` for its `async-done`.
pub(super) enum Asynchronous {
    /// The start, which holds the operation.
    Start,
    /// An intermediate step, which may bring more operands.
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
        let forms = [
            ("-start", Self::Start),
            ("-update", Self::Update),
            ("-done", Self::Done),
        ];
        let (ending, form) = forms
            .into_iter()
            .find(|(ending, _)| instruction.opcode.ends_with(ending))?;
        instruction
            .opcode
            .truncate(instruction.opcode.len() - ending.len());
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

impl<'a> Parser<'a, '_> {
    /// Returns the instruction that a short form stands for. `operation` has the operands and the shape of that
    /// instruction, and the attributes of the operation inside.
    ///
    /// As in XLA, the computation that a start calls has the operands and the result that the shape of the start names.
    /// Later steps replace them where theirs differ, and add operands.
    pub(super) fn unfold(
        &mut self,
        form: &Asynchronous,
        operation: HloInstructionProto,
        (shape, start): (ShapeId, usize),
        computation: &mut Computation<'a>,
    ) -> Result<HloInstructionProto, GraphError> {
        let mut whole = HloInstructionProto {
            opcode: form.opcode().to_owned(),
            shape: operation.shape.clone(),
            operand_ids: operation.operand_ids.clone(),
            ..HloInstructionProto::default()
        };
        let before = Computation::positions_of(&whole.operand_ids).next();
        let number = if let Asynchronous::Start = form {
            let number = self.wrap(operation, shape, start)?;
            let wrapped = self.pending.wrapped(number);
            let called = wrapped.map(|wrapped| wrapped.id);
            whole.called_computation_ids.extend(called);
            Some(number)
        } else {
            let of_step = before.and_then(|before| computation.wrapped.get(&before));
            of_step.copied()
        };
        let Some(number) = number else {
            return Ok(whole);
        };
        computation.wrapped.insert(computation.nodes.len(), number);
        let later = match form {
            Asynchronous::Start => return Ok(whole),
            Asynchronous::Update => self.signature_in(shape, start)?,
            Asynchronous::Done => Signature {
                parameters: Vec::new(),
                result: shape,
            },
        };
        self.change(number, &later)?;
        Ok(whole)
    }

    /// Adds a computation that applies one operation to its parameters, and returns its number.
    fn wrap(
        &mut self,
        operation: HloInstructionProto,
        shape: ShapeId,
        start: usize,
    ) -> Result<usize, GraphError> {
        self.count_reference()?;
        self.count_node()?;
        let signature = self.signature_in(shape, start)?;
        for _ in &signature.parameters {
            self.count_parameter()?;
        }
        // The computation of a call or a fusion is known, and says more than the shape of the start.
        let is_call = matches!(operation.opcode.as_str(), "call" | "fusion");
        let inside = operation.called_computation_ids.first().filter(|_| is_call);
        let called = inside.and_then(|&id| self.pending.signature(id)).cloned();
        let id = self.callees.unnamed();
        let number = self.pending.add_wrapped(Wrapped {
            id,
            signature,
            operation,
        });
        if let Some(called) = called {
            self.change(number, &called)?;
        }
        Ok(number)
    }

    fn count_parameter(&mut self) -> Result<(), GraphError> {
        self.count_node()?;
        self.count_reference()
    }

    /// Reads the shapes of operands and result in `((operands), result, ...)`, the shape of a start or an update.
    fn signature_in(&mut self, shape: ShapeId, start: usize) -> Result<Signature, GraphError> {
        let parts = self.shapes.elements(shape, &mut self.lexer)?;
        if let Some(&[operands, result, ..]) = parts
            && let Some(parameters) = self.shapes.elements(operands, &mut self.lexer)?
        {
            return Ok(Signature {
                parameters: parameters.to_vec(),
                result,
            });
        }
        self.lexer.return_to(start);
        Err(self
            .lexer
            .unexpected("a shape such as `((operands), result)`"))
    }

    /// Changes the computation of an asynchronous operation to what a later step says of it.
    fn change(&mut self, number: usize, later: &Signature) -> Result<(), GraphError> {
        let Some(wrapped) = self.pending.wrapped(number) else {
            return Ok(());
        };
        let empty = Signature {
            parameters: Vec::new(),
            result: later.result,
        };
        let mut signature = std::mem::replace(&mut wrapped.signature, empty);
        let both = signature.parameters.iter_mut().zip(&later.parameters);
        for (shape, &later) in both.chain([(&mut signature.result, &later.result)]) {
            if !self.shapes.compatible([*shape, later], &mut self.lexer)? {
                *shape = later;
            }
        }
        for &shape in later.parameters.iter().skip(signature.parameters.len()) {
            self.count_parameter()?;
            signature.parameters.push(shape);
        }
        if let Some(wrapped) = self.pending.wrapped(number) {
            wrapped.signature = signature;
        }
        Ok(())
    }
}
