//! Checks that layouts are ones that XLA accepts for the tensors of a graph.

use super::{batch::LayoutBatch, entry::LayoutEntry};
use crate::{ConfigurationError, Graph, arrays::producers, pace};

/// Names of the tensors of an entry.
const TENSORS: [&str; 3] = ["the output", "the first operand", "the second operand"];

/// Checks every entry that a configuration uses: a tensor's dimensions are listed at most once, and are dimensions that
/// the tensor has, if the graph tells. A list may end early, and −1 leaves a place to the compiler.
pub(super) fn check(batch: &LayoutBatch, graph: &Graph) -> Result<(), ConfigurationError> {
    // Tables have few entries and batches many configurations, so tables are checked first. Nearly
    // always, all of their entries are sound, and no configuration is looked at.
    let slots = graph.configurable().iter().enumerate();
    let slots = slots.map(|(slot, &node)| (slot, node, tensor_ranks(graph, node)));
    let has_fault = |(slot, _, ranks): &(usize, u32, _)| {
        let mut entries = batch.table(*slot).iter();
        entries.any(|&entry| check_entry(entry, *ranks, 0, 0).is_err())
    };
    let suspects: Vec<_> = slots.filter(has_fault).collect();
    if suspects.is_empty() {
        return Ok(());
    }
    // An entry that is at fault counts only if a configuration uses it.
    for config in pace::in_steps(1, 0..batch.len()) {
        for &(slot, node, ranks) in &suspects {
            check_entry(batch.entry(config, slot), ranks, config, node)?;
        }
    }
    Ok(())
}

/// Checks an entry of a configuration at a node whose tensors have these ranks, as far as they are known.
fn check_entry(
    entry: LayoutEntry,
    ranks: [Option<usize>; 3],
    config: usize,
    node: u32,
) -> Result<(), ConfigurationError> {
    let tensors = entry.listed().into_iter().zip(ranks).zip(TENSORS);
    for ((dimensions, rank), tensor) in tensors {
        // One bit for each of the six dimensions that an entry can list.
        let mut seen = 0_u8;
        for dimension in dimensions {
            if let Some(rank) = rank.filter(|&rank| usize::from(dimension.unsigned_abs()) >= rank) {
                return Err(ConfigurationError::NoSuchDimension {
                    config,
                    node,
                    tensor,
                    dimension,
                    rank,
                });
            }
            if seen >> dimension & 1 == 1 {
                return Err(ConfigurationError::DimensionTwice {
                    config,
                    node,
                    tensor,
                    dimension,
                });
            }
            seen |= 1 << dimension;
        }
    }
    Ok(())
}

/// Columns of the dimensions of a node's output, and of their product.
const OUTPUT: std::ops::Range<usize> = 21..27;
const PRODUCT: usize = 28;

/// Returns the ranks of the three tensors of a node, as far as features show them. A graph does not tell which operand comes
/// first, so each of them gets the larger rank.
fn tensor_ranks(graph: &Graph, node: u32) -> [Option<usize>; 3] {
    let mut ranks = producers(graph.edges(), node).map(|producer| rank(graph, producer));
    // If one rank is not known, it may be the largest.
    let operands = ranks.try_fold(None, |largest, rank| Some(largest.max(Some(rank?))));
    let operands = operands.flatten();
    [rank(graph, node), operands, operands]
}

/// Returns the number of dimensions of a node's output, which are 0 in unused places. It is unknown if a dimension may itself be 0, so that
/// the product is, and if there may be more dimensions than places.
fn rank(graph: &Graph, node: u32) -> Option<usize> {
    let row = graph.raw_row(node as usize);
    let used = row[OUTPUT]
        .iter()
        .filter(|dimension| **dimension != 0.0)
        .count();
    (row[PRODUCT] != 0.0 && used < OUTPUT.len()).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FEATURES, GraphArrays, LayoutBatchBuilder, Limits, Pad, Task};

    /// Returns a dot (node 2) of two nodes, whose outputs have this many dimensions; `None` for unknown ones.
    fn graph(ranks: [Option<usize>; 3]) -> Graph {
        let mut features = vec![0.0; 3 * FEATURES];
        for (row, rank) in features.chunks_exact_mut(FEATURES).zip(ranks) {
            row[OUTPUT][..rank.unwrap_or(0)].fill(1.0);
            row[PRODUCT] = if rank.is_some() { 1.0 } else { 0.0 };
        }
        let (edges, limits) = (vec![[2, 0], [2, 1]], Limits::default());
        let arrays =
            GraphArrays::from_features(vec![63, 63, 34], features, edges, Pad::Zero, &limits);
        Graph::new(Task::Layout, arrays.unwrap(), vec![2]).unwrap()
    }

    /// Checks a default configuration and one that sets these tensors.
    fn checked(ranks: [Option<usize>; 3], tensors: [&[i32]; 3]) -> Result<(), ConfigurationError> {
        let mut builder = LayoutBatchBuilder::new(1, Limits::default());
        for entry in [
            LayoutEntry::DEFAULT,
            LayoutEntry::from_tensors(tensors.iter()).unwrap(),
        ] {
            builder.push(&[entry]).unwrap();
        }
        check(&builder.build().unwrap(), &graph(ranks))
    }

    const RANKS: [Option<usize>; 3] = [Some(1), Some(3), Some(2)];

    #[test]
    fn parts_of_permutations_of_the_dimensions_that_a_tensor_has_are_layouts() {
        let twice = |tensor, dimension| {
            Err(ConfigurationError::DimensionTwice {
                config: 1,
                node: 2,
                tensor,
                dimension,
            })
        };
        let not_there = |tensor, dimension, rank| {
            Err(ConfigurationError::NoSuchDimension {
                config: 1,
                node: 2,
                tensor,
                dimension,
                rank,
            })
        };
        let unknown = [None; 3];
        for (ranks, tensors, expected) in [
            (RANKS, [&[1, 0][..], &[2, 0, 1], &[0, 1]], Ok(())),
            (RANKS, [&[], &[2], &[-1, -1]], Ok(())),
            (RANKS, [&[0], &[-1, 1], &[]], Ok(())),
            (unknown, [&[0, 0], &[], &[]], twice(TENSORS[0], 0)),
            (unknown, [&[1, 0], &[1, -1, 1], &[]], twice(TENSORS[1], 1)),
            (RANKS, [&[2], &[], &[]], not_there(TENSORS[0], 2, 2)),
            (RANKS, [&[], &[0, 3], &[]], not_there(TENSORS[1], 3, 3)),
            (RANKS, [&[], &[], &[5]], not_there(TENSORS[2], 5, 3)),
            (unknown, [&[2], &[0, 3], &[5]], Ok(())),
            ([Some(1), None, Some(2)], [&[0], &[5], &[5]], Ok(())),
        ] {
            assert_eq!(checked(ranks, tensors), expected, "{tensors:?}");
        }
    }

    #[test]
    fn an_entry_that_no_configuration_uses_is_ignored() {
        let bad = LayoutEntry::from_tensors([[0, 0]]).unwrap();
        let tables = vec![vec![LayoutEntry::DEFAULT, bad]];
        let batch = LayoutBatch::new(2, tables, vec![0, 0], &Limits::default()).unwrap();
        assert_eq!(check(&batch, &graph(RANKS)), Ok(()));
    }
}
