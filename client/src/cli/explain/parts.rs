//! The parts of layouts and tiles, and what the compared configurations choose in each.

use hlorank_graph::{Configurations, Graph, opcode_name};
use serde::Serialize;

use super::exchange::{Exchange, effects};

/// A part of a graph's configurations: a segment of a module, or a bound of a tile.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    /// Number of the segment, or list and position of the bound.
    pub(crate) name: String,
    /// Nodes of the segment, ascending; empty for a bound.
    pub(crate) nodes: Vec<u32>,
    /// What configurations set in it.
    pub(crate) choices: Vec<Choice>,
    /// What the part does to the score of the best, the reference and the worst.
    pub(crate) effects: [f64; 3],
}

/// What the best, the reference and the worst choose at one place.
#[derive(Debug, Serialize)]
pub(crate) struct Choice {
    /// The node; none for a bound.
    pub(crate) node: Option<u32>,
    /// Opcode of the node, and its name if it is known; the list for a bound.
    pub(crate) what: String,
    pub(crate) values: [String; 3],
}

/// Parts, and the configurations that show what they do: the compared three, and one for each exchange.
pub(super) struct Parts {
    pub(super) list: Vec<Part>,
    /// Number of parts beyond the limit.
    pub(super) left_out: usize,
    pub(super) exchanged: Vec<Exchange>,
    pub(super) configurations: Configurations,
}

impl Parts {
    /// Returns the parts with what they do to the scores, the largest effect first. The scores are
    /// those of `configurations`: of the three, then of each exchange.
    pub(super) fn with_effects(self, scores: &[f32]) -> Vec<Part> {
        let (three, rest) = scores.split_at(3);
        let exchanged = self.exchanged.into_iter().zip(rest.iter().copied());
        let exchanged: Vec<_> = exchanged.collect();
        let effects = effects(self.list.len(), [three[0], three[1], three[2]], &exchanged);
        let mut parts = self.list;
        for (part, effects) in parts.iter_mut().zip(effects) {
            part.effects = effects;
        }
        parts.sort_by(|one, other| other.size().total_cmp(&one.size()));
        parts
    }
}

impl Part {
    /// Returns the largest effect on the best and the worst.
    fn size(&self) -> f64 {
        self.effects[0].abs().max(self.effects[2].abs())
    }
}

/// Returns the name of the opcode of a node.
pub(crate) fn opcode(graph: &Graph, node: u32) -> &'static str {
    let id = graph.opcodes().get(node as usize);
    id.map_or("", |&id| opcode_name(id))
}
