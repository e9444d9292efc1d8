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
pub(super) fn post_order<O, P>(
    instructions: usize,
    operands: impl Fn(usize) -> O,
    predecessors: impl Fn(usize) -> P,
) -> Vec<usize>
where
    O: DoubleEndedIterator<Item = usize>,
    P: Iterator<Item = usize>,
{
    let mut has_users = vec![false; instructions];
    for operand in (0..instructions).flat_map(&operands) {
        has_users[operand] = true;
    }
    let mut states = vec![State::New; instructions];
    let mut order = Vec::with_capacity(instructions);
    let mut stack: Vec<usize> = Vec::new();
    for last in (0..instructions).filter(|&instruction| !has_users[instruction]) {
        stack.push(last);
        while let Some(&instruction) = stack.last() {
            if states[instruction] == State::New {
                states[instruction] = State::Open;
                let before = operands(instruction).rev().chain(predecessors(instruction));
                stack.extend(before.filter(|&before| states[before] != State::Done));
            } else {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn order(operands: &[&[usize]], predecessors: &[&[usize]]) -> Vec<usize> {
        post_order(
            operands.len(),
            |instruction| operands[instruction].iter().copied(),
            |instruction| {
                predecessors
                    .get(instruction)
                    .copied()
                    .unwrap_or_default()
                    .iter()
                    .copied()
            },
        )
    }

    #[test]
    fn operands_come_before_their_user_the_first_first() {
        assert_eq!(order(&[&[], &[], &[1, 0]], &[]), [1, 0, 2]);
        assert_eq!(order(&[&[], &[0, 0], &[], &[2, 1]], &[]), [2, 0, 1, 3]);
    }

    #[test]
    fn control_predecessors_come_before_operands() {
        assert_eq!(order(&[&[], &[], &[0]], &[&[], &[], &[1]]), [1, 0, 2]);
    }

    #[test]
    fn instructions_without_users_keep_their_order() {
        assert_eq!(order(&[&[], &[], &[]], &[]), [0, 1, 2]);
    }
}
