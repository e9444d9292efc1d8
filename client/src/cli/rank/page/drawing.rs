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
    rows: usize,
    columns: usize,
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
pub(super) const MAX_NODES: usize = 400;

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
        let position: HashMap<u32, usize> = nodes.iter().copied().zip(0..).collect();
        let inside = |[consumer, producer]: &[u32; 2]| {
            Some([*position.get(consumer)?, *position.get(producer)?])
        };
        let edges: Vec<_> = graph.edges().iter().filter_map(inside).collect();
        let places = places(nodes.len(), &edges);
        let kind = |node: &u32| match () {
            () if best.contains(node) => Kind::Best,
            () if worst.contains(node) => Kind::Worst,
            () if graph.configurable().contains(node) => Kind::Left,
            () => Kind::Fixed,
        };
        let node = |(&number, &[row, column]): (&u32, &[usize; 2])| Node {
            number,
            opcode: opcode(graph, number),
            kind: kind(&number),
            row,
            column,
        };
        let rows = places.iter().map(|[row, _]| row + 1).max();
        let columns = places.iter().map(|[_, column]| column + 1).max();
        Some(Self {
            rows: rows.unwrap_or(0),
            columns: columns.unwrap_or(0),
            nodes: nodes.iter().zip(&places).map(node).collect(),
            edges,
        })
    }

    pub(super) fn svg(&self) -> Markup {
        let (width, height) = (self.columns * STEP[0], self.rows * STEP[1]);
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

/// Draws an edge from the lower border of an operand to the upper border of its user.
fn curve(producer: &Node, consumer: &Node) -> String {
    let ([x, y], [to_x, to_y]) = (producer.centre(), consumer.centre());
    let (start, end) = (y + SIZE[1] / 2, to_y - SIZE[1] / 2);
    let middle = usize::midpoint(start, end);
    format!("M{x} {start}C{x} {middle} {to_x} {middle} {to_x} {end}")
}

/// Returns the row and the column of each node. Every node is below its operands, near the mean of their columns.
fn places(nodes: usize, edges: &[[usize; 2]]) -> Vec<[usize; 2]> {
    let levels = levels(nodes, edges);
    let mut operands = vec![Vec::new(); nodes];
    for &[consumer, producer] in edges {
        operands[consumer].push(producer);
    }
    let mut places = vec![[0, 0]; nodes];
    let mut first_row = 0;
    for level in 0..=levels.iter().copied().max().unwrap_or(0) {
        let mut row: Vec<usize> = (0..nodes).filter(|&node| levels[node] == level).collect();
        // In hundredths of a column.
        let mean = |node: &usize| {
            let operands = &operands[*node];
            let columns = operands.iter().map(|&operand| places[operand][1] * 100);
            let sum: usize = columns.sum();
            sum.checked_div(operands.len()).unwrap_or(0)
        };
        row.sort_by_cached_key(mean);
        for (place, &node) in row.iter().enumerate() {
            places[node] = [first_row + place / MAX_COLUMNS, place % MAX_COLUMNS];
        }
        first_row += row.len().div_ceil(MAX_COLUMNS);
    }
    places
}

/// Returns the length of the longest path from each node up to an operand without operands.
fn levels(nodes: usize, edges: &[[usize; 2]]) -> Vec<usize> {
    let (mut users, mut waits_for) = (vec![Vec::new(); nodes], vec![0_usize; nodes]);
    for &[consumer, producer] in edges {
        users[producer].push(consumer);
        waits_for[consumer] += 1;
    }
    let mut levels = vec![0; nodes];
    let mut ready: Vec<usize> = (0..nodes).filter(|&node| waits_for[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &user in &users[node] {
            levels[user] = levels[user].max(levels[node] + 1);
            waits_for[user] -= 1;
            if waits_for[user] == 0 {
                ready.push(user);
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
