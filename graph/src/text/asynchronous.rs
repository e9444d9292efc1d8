use std::mem::take;

use hlorank_proto::xla::HloInstructionProto;

use super::{
    attributes::keep_dimensions,
    computation::{ParsedComputation, Pending, Signature, WrapperComputation},
    module::Parser,
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

/// Where a step of an asynchronous operation begins in the text, and its shape.
#[derive(Clone, Copy)]
pub(super) struct StepPlace {
    pub(super) shape: ShapeId,
    pub(super) start: usize,
}

impl Asynchronous {
    /// Recognizes a short form by an opcode that XLA does not have, and reduces it to the opcode of the operation.
    pub(super) fn parse(instruction: &mut HloInstructionProto) -> Option<Self> {
        // Opcodes of XLA such as `copy-start` and `all-reduce-done` have these endings too, and are
        // no short forms.
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
        place: StepPlace,
        computation: &mut ParsedComputation<'a>,
    ) -> Result<HloInstructionProto, GraphError> {
        let mut step = HloInstructionProto {
            opcode: form.opcode().to_owned(),
            shape: operation.shape.clone(),
            operand_ids: operation.operand_ids.clone(),
            ..HloInstructionProto::default()
        };
        let number = if let Asynchronous::Start = form {
            let number = self.wrap(operation, place)?;
            let called = self.pending.wrapped(number).map(|wrapped| wrapped.id);
            step.called_computation_ids.extend(called);
            number
        } else {
            // The first operand of a later step is the step before it. If that is no step of a
            // short form, its computation is one of the text, and there is nothing to change.
            let before = ParsedComputation::positions_of(&step.operand_ids).next();
            let number = before.and_then(|before| computation.wrapped.get(&before));
            let Some(&number) = number else {
                return Ok(step);
            };
            // The shape of an end is the result alone; that of an update names the operands too.
            let later = match form {
                Asynchronous::Update => self.signature_in(place)?,
                Asynchronous::Start | Asynchronous::Done => Signature {
                    parameters: Vec::new(),
                    result: place.shape,
                },
            };
            self.change(number, &later)?;
            number
        };
        computation.wrapped.insert(computation.nodes.len(), number);
        Ok(step)
    }

    /// Adds a computation that applies one operation to its parameters, and returns its number.
    fn wrap(
        &mut self,
        operation: HloInstructionProto,
        place: StepPlace,
    ) -> Result<usize, GraphError> {
        // The text implies a callee and an instruction inside it; a short text must not make many
        // of them.
        self.count_reference()?;
        self.count_node()?;
        let signature = self.signature_in(place)?;
        for _ in &signature.parameters {
            self.count_parameter()?;
        }
        // The computation that a call or a fusion calls says more than the shape of the start. Those
        // of other operations, such as a reduction, have another signature than the operation.
        let called = matches!(operation.opcode.as_str(), "call" | "fusion")
            .then(|| operation.called_computation_ids.first())
            .flatten();
        let called = called.and_then(|&called| self.pending.signature(called).cloned());
        let id = self.callees.unnamed();
        let number = self.pending.add_wrapped(WrapperComputation {
            id,
            signature,
            operation,
        });
        if let Some(called) = called {
            self.change(number, &called)?;
        }
        Ok(number)
    }

    /// Counts a parameter of a wrapped operation, which is an instruction and an operand of the
    /// operation.
    fn count_parameter(&mut self) -> Result<(), GraphError> {
        self.count_node()?;
        self.count_reference()
    }

    /// Reads the shapes of operands and result in `((operands), result, ...)`, the shape of a start or an update.
    fn signature_in(&mut self, place: StepPlace) -> Result<Signature, GraphError> {
        let parts = self.shapes.elements(place.shape, &mut self.lexer)?;
        if let Some(&[operands, result, ..]) = parts
            && let Some(parameters) = self.shapes.elements(operands, &mut self.lexer)?
        {
            return Ok(Signature {
                parameters: parameters.to_vec(),
                result,
            });
        }
        self.lexer.return_to(place.start);
        Err(self
            .lexer
            .unexpected("a shape such as `((operands), result)`"))
    }

    /// Changes the computation of an asynchronous operation to what a later step says of it.
    fn change(&mut self, number: usize, later: &Signature) -> Result<(), GraphError> {
        let Some(wrapped) = self.pending.wrapped(number) else {
            return Ok(());
        };
        // The parameters are taken out while they change, because comparing shapes needs the
        // parser. They are not copied: a text may have many steps of an operation with many
        // parameters.
        let mut parameters = take(&mut wrapped.signature.parameters);
        let mut result = wrapped.signature.result;
        let both = parameters.iter_mut().zip(&later.parameters);
        for (shape, &later) in both.chain([(&mut result, &later.result)]) {
            // A shape that differs in its layout alone stays, as it does in XLA.
            if !self.shapes.compatible([*shape, later], &mut self.lexer)? {
                *shape = later;
            }
        }
        for &shape in later.parameters.iter().skip(parameters.len()) {
            self.count_parameter()?;
            parameters.push(shape);
        }
        if let Some(wrapped) = self.pending.wrapped(number) {
            wrapped.signature = Signature { parameters, result };
        }
        Ok(())
    }
}

impl Parser<'_, '_> {
    /// Adds all pending computations to the module, in order.
    pub(super) fn add_pending(&mut self) -> Result<(), GraphError> {
        for pending in self.pending.take() {
            match pending {
                Pending::Read { name, computation } => {
                    computation.close(name, &mut self.builder)?;
                }
                Pending::Wrapped(wrapped) => self.add_wrapped(wrapped)?,
            }
        }
        Ok(())
    }

    /// Adds the computation of an asynchronous operation: its parameters, and the operation as its
    /// root.
    fn add_wrapped(&mut self, wrapped: WrapperComputation) -> Result<(), GraphError> {
        let WrapperComputation {
            id,
            signature,
            mut operation,
        } = wrapped;
        let mut computation = ParsedComputation::new(id);
        // The operands that the text names are those of the first step, which passes them to this
        // computation.
        operation.operand_ids.clear();
        for (number, shape) in (0..).zip(signature.parameters) {
            let id = computation.instruction_id(computation.nodes.len());
            operation.operand_ids.push(id);
            let parameter = HloInstructionProto {
                name: "async_param".to_owned(),
                opcode: "parameter".to_owned(),
                parameter_number: number,
                shape: Some(self.implied_shape(shape)?),
                ..HloInstructionProto::default()
            };
            self.push_implied(&parameter, shape, &mut computation)?;
        }
        // XLA gives the parameters and the operation these names.
        "async_op".clone_into(&mut operation.name);
        operation.shape = Some(self.implied_shape(signature.result)?);
        keep_dimensions(&mut operation);
        self.push_implied(&operation, signature.result, &mut computation)?;
        computation.close("", &mut self.builder)
    }
}
