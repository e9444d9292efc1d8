//! Draws nodes of a graph: operands above their users.

use std::collections::HashMap;

use hlorank_graph::Graph;
use maud::{Markup, html};

use crate::cli::explain::opcode;

/// A part of a graph to draw.
pub(super) struct Drawing {
    nodes: Vec<Node>,
    /// Pairs (consumer, producer) of positions in `nodes`.
    edges: Vec<[usize; 2]>,
}

/// A node and its place.
struct Node {
    number: u32,
    opcode: &'static str,
    kind: Kind,
    row: usize,
    column: usize,
}

/// What a configuration does to a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It cannot be configured.
    Fixed,
    /// The best and the worst configuration leave it as it is.
    Left,
    /// The best configuration sets it.
    Best,
    /// The worst configuration sets it, and the best does not.
    Worst,
}

/// Maximum number of nodes of a drawing.
const MAX_NODES: usize = 400;

/// Maximum number of nodes in a row.
const MAX_COLUMNS: usize = 7;

/// Distances between the centres of nodes, and their size, in pixels.
const STEP: [usize; 2] = [104, 62];
const SIZE: [usize; 2] = [94, 36];

/// Maximum number of letters in a node.
const LETTERS: usize = 13;

impl Drawing {
    /// Draws these nodes, ascending; `None` if there are none or too many. `best` and `worst` list the nodes that these
    /// configurations set.
    pub(super) fn of(graph: &Graph, nodes: &[u32], best: &[u32], worst: &[u32]) -> Option<Self> {
        if nodes.is_empty() || nodes.len() > MAX_NODES {
            return None;
        }
        let edges = edges_between(graph, nodes);
        let places = places(nodes.len(), &edges);
        let node = |(&number, &[row, column]): (&u32, &[usize; 2])| Node {
            number,
            opcode: opcode(graph, number),
            kind: Kind::of(graph, number, best, worst),
            row,
            column,
        };
        Some(Self {
            nodes: nodes.iter().zip(&places).map(node).collect(),
            edges,
        })
    }

    pub(super) fn svg(&self) -> Markup {
        let [width, height] = self.size();
        // Edges come first, because later elements of SVG cover earlier ones.
        html! {
            svg.graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img"
                aria-label=(format!("{} nodes and {} edges", self.nodes.len(), self.edges.len())) {
                @for [consumer, producer] in &self.edges {
                    path.edge d=(curve(&self.nodes[*producer], &self.nodes[*consumer])) {}
                }
                @for node in &self.nodes { (node.svg()) }
            }
        }
    }

    /// Returns the width and the height in pixels.
    fn size(&self) -> [usize; 2] {
        let columns = self.nodes.iter().map(|node| node.column + 1).max();
        let rows = self.nodes.iter().map(|node| node.row + 1).max();
        [columns.unwrap_or(0) * STEP[0], rows.unwrap_or(0) * STEP[1]]
    }
}

impl Kind {
    fn of(graph: &Graph, node: u32, best: &[u32], worst: &[u32]) -> Self {
        if best.contains(&node) {
            Self::Best
        } else if worst.contains(&node) {
            Self::Worst
        } else if graph.configurable().contains(&node) {
            Self::Left
        } else {
            Self::Fixed
        }
    }
}

impl Node {
    fn centre(&self) -> [usize; 2] {
        [
            self.column * STEP[0] + STEP[0] / 2,
            self.row * STEP[1] + STEP[1] / 2,
        ]
    }

    fn svg(&self) -> Markup {
        let [x, y] = self.centre();
        let class = match self.kind {
            Kind::Fixed => "fixed",
            Kind::Left => "left",
            Kind::Best => "best",
            Kind::Worst => "worst",
        };
        let short: String = self.opcode.chars().take(LETTERS).collect();
        html! {
            g class=(class) {
                title { (self.number) " " (self.opcode) }
                rect x=(x - SIZE[0] / 2) y=(y - SIZE[1] / 2) width=(SIZE[0]) height=(SIZE[1]) rx="6" {}
                text x=(x) y=(y - 3) { (short) }
                text.number x=(x) y=(y + 11) { (self.number) }
            }
        }
    }
}

/// Returns the edges of these nodes as positions among them.
fn edges_between(graph: &Graph, nodes: &[u32]) -> Vec<[usize; 2]> {
    let position: HashMap<u32, usize> = nodes.iter().copied().zip(0..).collect();
    // An edge that leaves the segment has no place for its other end.
    let inside = |[consumer, producer]: &[u32; 2]| {
        Some([*position.get(consumer)?, *position.get(producer)?])
    };
    graph.edges().iter().filter_map(inside).collect()
}

/// Draws an edge from the lower border of an operand to the upper border of its user.
fn curve(producer: &Node, consumer: &Node) -> String {
    let [x, y] = producer.centre();
    let [to_x, to_y] = consumer.centre();
    let start = y + SIZE[1] / 2;
    let end = to_y - SIZE[1] / 2;
    // Both control points are at half the height, so the curve begins and ends vertically.
    let middle = usize::midpoint(start, end);
    format!("M{x} {start}C{x} {middle} {to_x} {middle} {to_x} {end}")
}

/// Returns the row and the column of each node. Every node is below its operands, near the mean of their columns.
fn places(nodes: usize, edges: &[[usize; 2]]) -> Vec<[usize; 2]> {
    // This is one downward sweep of the barycentre heuristic for layered drawings (Sugiyama et al.,
    // 1981): a layer that is sorted by the means of the layers above has few crossing edges.
    let levels = levels(nodes, edges);
    let mut operands = vec![Vec::new(); nodes];
    for &[consumer, producer] in edges {
        operands[consumer].push(producer);
    }
    let mut places = vec![[0, 0]; nodes];
    let mut first_row = 0;
    for level in 0..=levels.iter().copied().max().unwrap_or(0) {
        let mut layer: Vec<usize> = (0..nodes).filter(|&node| levels[node] == level).collect();
        // All operands are on earlier levels, so they have their places.
        layer.sort_by_cached_key(|&node| mean_column(&operands[node], &places));
        for (place, &node) in layer.iter().enumerate() {
            places[node] = [first_row + place / MAX_COLUMNS, place % MAX_COLUMNS];
        }
        first_row += layer.len().div_ceil(MAX_COLUMNS);
    }
    places
}

/// Returns the mean column of these nodes in hundredths of a column; 0 if there are none.
fn mean_column(nodes: &[usize], places: &[[usize; 2]]) -> usize {
    // Whole numbers can be sorted by, unlike floats.
    let sum: usize = nodes.iter().map(|&node| places[node][1] * 100).sum();
    sum.checked_div(nodes.len()).unwrap_or(0)
}

/// Returns the length of the longest path from each node up to an operand without operands.
fn levels(nodes: usize, edges: &[[usize; 2]]) -> Vec<usize> {
    let mut levels = vec![0; nodes];
    let mut is_final = false;
    // A graph has no cycle, so levels stop rising. Edges are sorted by consumer, and XLA numbers
    // operands below their users, so one pass nearly always suffices, and a second confirms it.
    while !is_final {
        is_final = true;
        for &[consumer, producer] in edges {
            if levels[consumer] <= levels[producer] {
                levels[consumer] = levels[producer] + 1;
                is_final = false;
            }
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_below_all_of_its_operands() {
        let edges = [[2, 0], [2, 1], [3, 2], [3, 0], [4, 3]];
        assert_eq!(levels(5, &edges), [0, 0, 1, 2, 3]);
        let places = places(5, &edges);
        assert!(
            edges
                .iter()
                .all(|&[consumer, producer]| places[consumer][0] > places[producer][0])
        );
    }

    #[test]
    fn a_long_row_is_broken() {
        let places = places(10, &[]);
        assert_eq!((places[6], places[7], places[9]), ([0, 6], [1, 0], [1, 2]));
    }
}
