use std::collections::HashMap;

use super::prune::Pruned;

/// Connected pieces of the pruned graph as ascending positions in `pruned.nodes`, ordered by their first node.
pub(super) fn connected_pieces(pruned: &Pruned) -> Vec<Vec<u32>> {
    let mut parents: Vec<u32> = (0..).take(pruned.nodes.len()).collect();
    for &[consumer, producer] in &pruned.edges {
        join(&mut parents, consumer, producer);
    }
    // Positions are visited in ascending order, so pieces are ordered by their first node, and
    // their nodes ascend.
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    let mut piece_of_root = HashMap::new();
    for position in (0..).take(pruned.nodes.len()) {
        let root = find(&mut parents, position);
        let piece = *piece_of_root.entry(root).or_insert_with(|| {
            pieces.push(Vec::new());
            pieces.len() - 1
        });
        pieces[piece].push(position);
    }
    pieces
}

/// Makes two sets one (union-find). A parent is never larger than its child, so the root is the
/// first node of its set.
fn join(parents: &mut [u32], one: u32, other: u32) {
    let one = find(parents, one);
    let other = find(parents, other);
    parents[one.max(other) as usize] = one.min(other);
}

/// The root of a set; halves the path on the way.
fn find(parents: &mut [u32], mut position: u32) -> u32 {
    while parents[position as usize] != position {
        let grandparent = parents[parents[position as usize] as usize];
        parents[position as usize] = grandparent;
        position = grandparent;
    }
    position
}
