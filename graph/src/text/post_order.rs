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
