//! What arrays from elsewhere do not say: the operands of each instruction in order, and the dimensions of dots.

use super::instruction::DotDimensions;
use crate::{
    FEATURES, GraphArrays,
    arrays::{OperandLists, producers},
};

/// Lists the operands of every node: its producers in ascending order, without the roots of called computations. All nodes
/// count as the entry computation, and its root is the last root that no node uses.
pub(super) fn guess_operands(arrays: &GraphArrays) -> OperandLists {
    let is_root = |node: usize| arrays.features[node * FEATURES] == 1.0;
    let nodes = arrays.opcodes.len();
    let mut is_used = vec![false; nodes];
    for [_, producer] in &arrays.edges {
        is_used[*producer as usize] = true;
    }
    let root = (0..nodes).rfind(|&node| is_root(node) && !is_used[node]);
    let operands = (0..).take(nodes).map(|node| {
        let operands = producers(&arrays.edges, node);
        let operands = operands.filter(|&operand| !is_root(operand as usize));
        (operands.collect(), Vec::new())
    });
    OperandLists::new(0, root.unwrap_or(nodes - 1), operands)
}

/// Finds dimensions that give the result of a dot its sizes: leading batch dimensions, and one contracted dimension.
pub(super) fn guess_dot(left: &[i64], right: &[i64], result: &[i64]) -> Option<DotDimensions> {
    let batch = (left.len() + right.len()).checked_sub(result.len() + 2)?;
    let shared = left.get(..batch)?;
    if right.get(..batch)? != shared {
        return None;
    }
    for one in (batch..left.len()).rev() {
        for other in batch..right.len() {
            let left_free = left[batch..one].iter().chain(&left[one + 1..]);
            let right_free = right[batch..other].iter().chain(&right[other + 1..]);
            let sizes = shared.iter().chain(left_free).chain(right_free);
            if left[one] == right[other] && sizes.eq(result) {
                return Some(DotDimensions {
                    contracted: [vec![one], vec![other]],
                    batch: [0, 1].map(|_| (0..batch).collect()),
                });
            }
        }
    }
    None
}
