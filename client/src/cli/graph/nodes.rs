use std::fmt::{self, Display};

use hlorank_graph::{MeasuredGraph, opcode_name};
use serde::Serialize;

use crate::cli::output::{Align, Table};

/// The nodes that a layout configuration sets, in slot order.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ConfigurableNodes(Vec<ConfigurableNode>);

/// A node that a layout configuration sets. Only its number and opcode are known if the graph came as features.
#[derive(Debug, Serialize)]
struct ConfigurableNode {
    node: u32,
    opcode: &'static str,
    name: Option<String>,
    dimensions: Option<Vec<i64>>,
    /// Ranks of the output and of the first two operands.
    tensor_ranks: Option<Vec<u32>>,
}

impl ConfigurableNodes {
    pub(super) fn of(measured: &MeasuredGraph) -> Self {
        let slots = measured.graph.configurable().iter().enumerate();
        let node = |(slot, &node): (usize, &u32)| ConfigurableNode::of(measured, slot, node);
        Self(slots.map(node).collect())
    }
}

const COLUMNS: [(&str, Align); 5] = [
    ("node", Align::Right),
    ("opcode", Align::Left),
    ("name", Align::Left),
    ("dimensions", Align::Left),
    ("ranks", Align::Left),
];

impl ConfigurableNode {
    fn of(measured: &MeasuredGraph, slot: usize, node: u32) -> Self {
        // An npz file has numbers for its nodes, and no descriptions.
        let description = measured.nodes.get(slot);
        let opcode = measured.graph.opcodes().get(node as usize);
        Self {
            node,
            opcode: opcode.map_or("-", |&opcode| opcode_name(opcode)),
            name: description.map(|description| description.name.clone()),
            dimensions: description.map(|description| description.dimensions.clone()),
            tensor_ranks: description.map(|description| description.tensor_ranks.clone()),
        }
    }

    fn cells(&self) -> [String; 5] {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let dimensions = self.dimensions.as_ref();
        let ranks = self.tensor_ranks.as_ref();
        [
            self.node.to_string(),
            self.opcode.to_owned(),
            or_dash(self.name.clone()),
            or_dash(dimensions.map(|dimensions| format!("{dimensions:?}"))),
            or_dash(ranks.map(|ranks| format!("{ranks:?}"))),
        ]
    }
}

impl Display for ConfigurableNodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&COLUMNS);
        self.0.iter().for_each(|node| table.row(node.cells()));
        write!(formatter, "{table}")
    }
}
