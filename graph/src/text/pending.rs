use std::collections::HashMap;

use hlorank_proto::xla::HloInstructionProto;

use super::{attributes::keep_dimensions, computation::Computation, module::Parser, shapes::ShapeId};
use crate::{GraphError, module::Origin};

/// The shapes of the parameters and of the root of a computation.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) parameters: Vec<ShapeId>,
    pub(super) result: ShapeId,
}

/// The computations that are not in the module yet. Later steps of an asynchronous operation can change the computation
/// that its first step calls, so all computations inside one of the text wait for its end.
#[derive(Default)]
pub(super) struct PendingComputations<'a> {
    computations: Vec<Pending<'a>>,
    /// Signatures of all computations that were read, by id.
    signatures: HashMap<i64, Signature>,
}

/// A computation that is not in the module yet.
enum Pending<'a> {
    Read { name: &'a str, computation: Computation<'a> },
    Wrapped(Wrapped),
}

/// A computation of one operation, which an asynchronous operation calls.
pub(super) struct Wrapped {
    pub(super) id: i64,
    pub(super) signature: Signature,
    pub(super) operation: HloInstructionProto,
}

impl<'a> PendingComputations<'a> {
    /// Adds a computation that was read.
    pub(super) fn add(&mut self, name: &'a str, computation: Computation<'a>) {
        if let Some(&result) = computation.shapes.get(computation.root_position()) {
            let mut parameters = computation.parameters.clone();
            parameters.sort_by_key(|(number, _)| *number);
            let parameters = parameters.into_iter().map(|(_, shape)| shape).collect();
            self.signatures.insert(computation.id, Signature { parameters, result });
        }
        self.computations.push(Pending::Read { name, computation });
    }

    /// Adds the computation of an asynchronous operation, and returns its number.
    pub(super) fn add_wrapped(&mut self, wrapped: Wrapped) -> usize {
        self.computations.push(Pending::Wrapped(wrapped));
        self.computations.len() - 1
    }

    /// Returns the computation of an asynchronous operation.
    pub(super) fn wrapped(&mut self, number: usize) -> Option<&mut Wrapped> {
        match self.computations.get_mut(number) {
            Some(Pending::Wrapped(wrapped)) => Some(wrapped),
            _ => None,
        }
    }

    /// Returns the signature of a computation that was read.
    pub(super) fn signature(&self, id: i64) -> Option<&Signature> {
        self.signatures.get(&id)
    }
}

impl Parser<'_, '_> {
    /// Adds all pending computations to the module, in order.
    pub(super) fn add_pending(&mut self) -> Result<(), GraphError> {
        for pending in std::mem::take(&mut self.pending.computations) {
            match pending {
                Pending::Read { name, computation } => computation.close(name, &mut self.builder)?,
                Pending::Wrapped(wrapped) => self.add_wrapped(wrapped)?,
            }
        }
        Ok(())
    }

    fn add_wrapped(&mut self, wrapped: Wrapped) -> Result<(), GraphError> {
        let Wrapped { id, signature, mut operation } = wrapped;
        let mut computation = Computation::new(id);
        operation.operand_ids.clear();
        for (number, shape) in (0..).zip(signature.parameters) {
            operation.operand_ids.push(computation.instruction_id(computation.nodes.len()));
            let parameter = HloInstructionProto {
                name: "async_param".to_owned(),
                opcode: "parameter".to_owned(),
                parameter_number: number,
                shape: Some(self.shapes.message(shape, &mut self.lexer)?),
                ..HloInstructionProto::default()
            };
            self.push(&parameter, shape, Origin::implied(&parameter), &mut computation);
        }
        "async_op".clone_into(&mut operation.name);
        operation.shape = Some(self.shapes.message(signature.result, &mut self.lexer)?);
        keep_dimensions(&mut operation);
        self.push(&operation, signature.result, Origin::implied(&operation), &mut computation);
        computation.close("", &mut self.builder)
    }
}
