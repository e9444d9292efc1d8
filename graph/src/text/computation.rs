use std::collections::HashMap;

use hlorank_proto::xla::HloInstructionProto;

use super::shapes::ShapeId;
use crate::{
    GraphError, TextError,
    module::{ModuleBuilder, Nodes},
    pace, shortened,
};

/// A computation that is being read.
pub(super) struct ParsedComputation<'a> {
    pub(super) id: i64,
    /// Positions of the instructions, by name.
    pub(super) positions: HashMap<&'a str, usize>,
    pub(super) nodes: Nodes<'a>,
    /// Shapes of the instructions.
    pub(super) shapes: Vec<ShapeId>,
    /// Numbers and shapes of the parameters.
    pub(super) parameters: Vec<(i64, ShapeId)>,
    /// Positions of the get-tuple-elements that are written as `%x#0`, by the position of the tuple and the index.
    pub(super) elements: HashMap<(usize, i64), usize>,
    /// The wrapped operation of each step of an asynchronous operation, by the position of the step.
    pub(super) wrapped: HashMap<usize, usize>,
    /// Position of the instruction that is marked `ROOT`.
    pub(super) root: Option<usize>,
    /// Control predecessors of each instruction: they run before it and are not its operands.
    pub(super) predecessors: HashMap<usize, Vec<usize>>,
}

impl<'a> ParsedComputation<'a> {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            positions: HashMap::new(),
            nodes: Nodes::default(),
            shapes: Vec::new(),
            parameters: Vec::new(),
            elements: HashMap::new(),
            wrapped: HashMap::new(),
            root: None,
            predecessors: HashMap::new(),
        }
    }

    /// Returns the id of an instruction, which is unique in the module.
    pub(super) fn instruction_id(&self, position: usize) -> i64 {
        // The limit on nodes keeps the number of computations and that of instructions far below
        // 2^31, so the two halves of an id do not overlap.
        self.id << 32 | i64::try_from(position).unwrap_or(i64::MAX)
    }

    /// Returns the positions of the operands of an instruction, given their ids.
    pub(super) fn positions_of(ids: &[i64]) -> impl DoubleEndedIterator<Item = usize> {
        ids.iter()
            .filter_map(|id| usize::try_from(id & i64::from(u32::MAX)).ok())
    }

    /// Returns the position of the root: the last instruction of the text if none is marked.
    fn root_position(&self) -> usize {
        self.root.unwrap_or(self.nodes.len().saturating_sub(1))
    }

    /// Registers the name of the instruction that was added last.
    pub(super) fn register(&mut self, name: &'a str, is_root: bool) -> Result<(), TextError> {
        let position = self.nodes.len() - 1;
        if self.positions.insert(name, position).is_some() {
            return Err(TextError::DuplicateInstruction {
                name: shortened(name),
            });
        }
        if is_root && self.root.replace(position).is_some() {
            return Err(TextError::SecondRoot {
                name: shortened(name),
            });
        }
        Ok(())
    }

    /// Adds the instructions to the module in the order in which XLA serializes them. The text of a scheduled module
    /// has another order.
    pub(super) fn close(
        mut self,
        name: &str,
        builder: &mut ModuleBuilder<'a, '_>,
    ) -> Result<(), GraphError> {
        let root = self.root_position();
        // The root is known only at the end, after all instructions are featurized.
        self.nodes.mark_root(root);
        builder.begin(name, self.id, self.instruction_id(root))?;
        for position in pace::in_steps(16, self.post_order()) {
            builder.copy(self.instruction_id(position), &self.nodes, position)?;
        }
        builder.end(name)
    }

    fn post_order(&self) -> Vec<usize> {
        let operands = |position| Self::positions_of(self.nodes.operands(position));
        let predecessors = |position| {
            self.predecessors
                .get(&position)
                .into_iter()
                .flatten()
                .copied()
        };
        post_order(self.nodes.len(), operands, predecessors)
    }
}

/// The state of an instruction during the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// Its operands are on the stack above it.
    Open,
    Done,
}

/// Returns the order in which XLA serializes the instructions of a computation: depth first from every instruction
/// without users, operands before users. `operands` and `predecessors` (control predecessors) return positions below
/// that of the instruction.
///
/// Source: `HloComputation::MakeInstructionPostOrder`, except for collectives that share a channel in programs that
/// differ among devices.
fn post_order<O, P>(
    instructions: usize,
    operands: impl Fn(usize) -> O,
    predecessors: impl Fn(usize) -> P,
) -> Vec<usize>
where
    O: DoubleEndedIterator<Item = usize>,
    P: Iterator<Item = usize>,
{
    let mut states = vec![State::New; instructions];
    let mut order = Vec::with_capacity(instructions);
    // The stack is explicit because a chain of operands may be as long as the text, which recursion
    // does not survive.
    let mut stack: Vec<usize> = Vec::new();
    for last in unused(instructions, &operands) {
        stack.push(last);
        while let Some(&instruction) = stack.last() {
            if states[instruction] == State::New {
                // The instruction stays on the stack below what comes before it. The last one
                // pushed is visited first, so control predecessors come before operands, and
                // operands in their own order.
                states[instruction] = State::Open;
                let before = operands(instruction).rev().chain(predecessors(instruction));
                stack.extend(before.filter(|&before| states[before] != State::Done));
            } else {
                // An operand of several users can be on the stack several times; it is listed once.
                stack.pop();
                if states[instruction] == State::Open {
                    states[instruction] = State::Done;
                    order.push(instruction);
                }
            }
        }
    }
    order
}

/// Returns the instructions that are no operand of another, ascending.
fn unused<O: Iterator<Item = usize>>(
    instructions: usize,
    operands: impl Fn(usize) -> O,
) -> impl Iterator<Item = usize> {
    let mut has_users = vec![false; instructions];
    for operand in (0..instructions).flat_map(operands) {
        has_users[operand] = true;
    }
    (0..instructions).filter(move |&instruction| !has_users[instruction])
}

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
        computation: ParsedComputation<'a>,
    },
    Wrapped(WrapperComputation),
}

/// A computation of one operation, which an asynchronous operation calls.
pub(super) struct WrapperComputation {
    pub(super) id: i64,
    pub(super) signature: Signature,
    pub(super) operation: HloInstructionProto,
}

impl<'a> PendingComputations<'a> {
    /// Adds a computation that was read.
    pub(super) fn add(&mut self, name: &'a str, computation: ParsedComputation<'a>) {
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
    pub(super) fn add_wrapped(&mut self, wrapped: WrapperComputation) -> usize {
        self.computations.push(Pending::Wrapped(wrapped));
        self.computations.len() - 1
    }

    /// Returns the computation of an asynchronous operation.
    pub(super) fn wrapped(&mut self, number: usize) -> Option<&mut WrapperComputation> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predecessors_come_before_operands_and_operands_before_their_user_the_first_first() {
        let none: &[&[usize]] = &[&[] as &[usize]; 4];
        for (operands, predecessors, expected) in [
            (&[&[][..], &[], &[1, 0]][..], none, &[1, 0, 2][..]),
            (&[&[], &[0, 0], &[], &[2, 1]], none, &[2, 0, 1, 3]),
            (&[&[], &[], &[0]], &[&[], &[], &[1]], &[1, 0, 2]),
            // Instructions without users keep their order.
            (&[&[], &[], &[]], none, &[0, 1, 2]),
        ] {
            let order = post_order(
                operands.len(),
                |instruction| operands[instruction].iter().copied(),
                |instruction| predecessors[instruction].iter().copied(),
            );
            assert_eq!(order, expected);
        }
    }
}
