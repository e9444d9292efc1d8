/// Sums the embeddings of configurations one after the other, each from the one before it.
///
/// A sum is a fixed binary tree over the rows of a configuration. A configuration that differs from the one before it
/// in a few segments costs the paths above them, and has the same bits as a sum made anew: equal configurations have
/// equal sums in every batch. A configuration with another number of rows is summed anew.
pub(super) struct SumTree<'a> {
    /// `[rows, size]`.
    embeddings: &'a [f32],
    size: usize,
    /// `[occurrences]` the rows of the configuration that was summed last.
    leaves: Vec<u32>,
    /// `[occurrences, size]` partial sums: node `i` has the children `2i` and `2i + 1`, and the root is 1. From
    /// `occurrences` on, children are leaves.
    partial: Vec<f32>,
    /// A bit for each node, which is set if its children changed.
    stale: Vec<u64>,
}

/// Number of rows that are compared at a time.
const COMPARED: usize = 8;

/// Number of nodes in a word of [`SumTree::stale`].
const BITS: usize = u64::BITS as usize;

impl<'a> SumTree<'a> {
    /// Sums rows of `[rows, size]` embeddings.
    pub(super) fn new(embeddings: &'a [f32], size: usize) -> Self {
        Self {
            embeddings,
            size,
            leaves: Vec::new(),
            partial: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// Returns the sum of the embeddings of these rows.
    pub(super) fn sum(&mut self, rows: &[u32]) -> &[f32] {
        if rows.is_empty() {
            self.leaves.clear();
            self.partial = vec![0.0; self.size];
            return &self.partial;
        }
        if self.leaves.len() == rows.len() {
            self.replace(rows);
        } else {
            self.restart(rows);
        }
        self.refresh();
        self.node(1)
    }

    /// Begins anew with these rows, whose number is another one.
    fn restart(&mut self, rows: &[u32]) {
        self.leaves = rows.to_vec();
        self.partial = vec![0.0; rows.len() * self.size];
        self.stale = vec![0; rows.len().div_ceil(BITS)];
        (1..rows.len()).for_each(|node| self.set_stale(node));
    }

    /// Adds the children of every stale node, and of the nodes above it up to the root.
    fn refresh(&mut self) {
        // Children have higher numbers than their parents. The stale node with the highest number
        // comes first, so each is added once, after both of its children.
        for word in (0..self.stale.len()).rev() {
            while let Some(bit) = self.stale[word].checked_ilog2() {
                self.stale[word] &= !(1 << bit);
                let node = word * BITS + bit as usize;
                self.add_children(node);
                if node > 1 {
                    self.set_stale(node / 2);
                }
            }
        }
    }

    fn set_stale(&mut self, node: usize) {
        self.stale[node / BITS] |= 1 << (node % BITS);
    }

    fn replace(&mut self, rows: &[u32]) {
        let count = rows.len();
        // Most rows are those of the configuration before, so groups of them are compared first.
        for first in (0..count).step_by(COMPARED) {
            let some = first..count.min(first + COMPARED);
            if self.leaves[some.clone()] == rows[some.clone()] {
                continue;
            }
            for leaf in some {
                if self.leaves[leaf] == rows[leaf] {
                    continue;
                }
                self.leaves[leaf] = rows[leaf];
                // The only leaf of a tree is its root.
                if count > 1 {
                    self.set_stale((count + leaf) >> 1);
                }
            }
        }
    }

    fn add_children(&mut self, node: usize) {
        let count = self.leaves.len();
        // The children lie behind the node, so it can be written while they are read.
        let (parents, children) = self.partial.split_at_mut((node + 1) * self.size);
        let child = |child: usize| match child.checked_sub(count) {
            Some(leaf) => embedding(self.embeddings, self.size, self.leaves[leaf]),
            None => &children[(child - node - 1) * self.size..][..self.size],
        };
        let sums = parents[node * self.size..].iter_mut();
        for (sum, (left, right)) in sums.zip(child(2 * node).iter().zip(child(2 * node + 1))) {
            *sum = left + right;
        }
    }

    fn node(&self, node: usize) -> &[f32] {
        match node.checked_sub(self.leaves.len()) {
            Some(leaf) => embedding(self.embeddings, self.size, self.leaves[leaf]),
            None => &self.partial[node * self.size..][..self.size],
        }
    }
}

fn embedding(embeddings: &[f32], size: usize, row: u32) -> &[f32] {
    &embeddings[row as usize * size..][..size]
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const SIZE: usize = 3;

    fn batches() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<u32>>)> {
        (1_u32..9, 0_usize..12).prop_flat_map(|(rows, occurrences)| {
            let embeddings = vec(-1e3_f32..1e3, rows as usize * SIZE);
            let of_one_length = vec(vec(0..rows, occurrences), 1..20);
            (
                embeddings,
                prop_oneof![of_one_length, vec(vec(0..rows, 0..12), 1..20)],
            )
        })
    }

    proptest! {
        #[test]
        fn a_sum_does_not_depend_on_the_sums_before_it((embeddings, configs) in batches()) {
            let mut tree = SumTree::new(&embeddings, SIZE);
            for rows in &configs {
                let alone = SumTree::new(&embeddings, SIZE).sum(rows).to_vec();
                prop_assert_eq!(tree.sum(rows), &alone);
                for (place, sum) in alone.iter().enumerate() {
                    let values = rows.iter().map(|&row| f64::from(embeddings[row as usize * SIZE + place]));
                    prop_assert!((f64::from(*sum) - values.sum::<f64>()).abs() < 1e-2);
                }
            }
        }
    }

    #[test]
    fn one_segment_is_its_own_sum() {
        let mut tree = SumTree::new(&[1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!(tree.sum(&[1]), [3.0, 4.0]);
        assert_eq!(tree.sum(&[0]), [1.0, 2.0]);
    }
}
