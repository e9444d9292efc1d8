use std::collections::HashMap;

use hlorank_proto::xla::HloInstructionProto;

use super::{computation::Computation, shapes::ShapeId};

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
pub(super) enum Pending<'a> {
    Read {
        name: &'a str,
        computation: Computation<'a>,
    },
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
            // Parameters may stand in any order in the text; the signature has them by number.
            let mut parameters = computation.parameters.clone();
            parameters.sort_by_key(|(number, _)| *number);
            let parameters = parameters.into_iter().map(|(_, shape)| shape).collect();
            self.signatures
                .insert(computation.id, Signature { parameters, result });
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

    /// Takes all computations out, in order. Their signatures stay.
    pub(super) fn take(&mut self) -> Vec<Pending<'a>> {
        // Positions in the list are the numbers of wrapped operations. They are valid until here:
        // all steps of an operation stand in one computation, and the list is taken when the
        // outermost computation ends.
        std::mem::take(&mut self.computations)
    }

    /// Returns the signature of a computation that was read.
    pub(super) fn signature(&self, id: i64) -> Option<&Signature> {
        self.signatures.get(&id)
    }
}
