use hlorank_proto::v1;

use super::{Element, FeatureRows, Scope};
use crate::{Limits, fusion::row_bytes};

/// The facts about one kind of configuration.
#[derive(Debug)]
pub struct Kind {
    /// Name in manifests, settings and messages.
    pub name: &'static str,
    /// Number on the wire.
    pub wire: v1::Task,
    /// What one configuration is about.
    pub scope: Scope,
    /// Element type of the model input `config`.
    pub element: Element,
    /// Values per configuration ([`Scope::Kernel`]) or per configurable node ([`Scope::Nodes`]); 0 if the model takes no
    /// configurations ([`Scope::Program`]) or if its feature set decides ([`Scope::EveryNode`]).
    pub width: usize,
    /// Name of the array of configurations in an npz file.
    pub array: &'static str,
    /// Starts reading the rows of that array for a graph with this many slots.
    pub feature_rows: fn(slots: usize, limits: Limits) -> Box<dyn FeatureRows>,
}

impl Kind {
    /// Number in the canonical form of a graph: the number on the wire.
    #[must_use]
    pub fn number(&self) -> u8 {
        u8::try_from(i32::from(self.wire)).unwrap_or(u8::MAX)
    }

    /// Number of values per configuration in an array of this shape in an npz file, for a graph with this many slots; `None`
    /// if the array has another shape.
    #[must_use]
    pub fn row_length(&self, slots: usize, shape: &[usize]) -> Option<usize> {
        match (self.scope, shape) {
            (Scope::Kernel, [_, width]) if *width == self.width => Some(self.width),
            (Scope::Nodes, [_, nodes, width]) if [*nodes, *width] == [slots, self.width] => {
                Some(slots * self.width)
            }
            (Scope::Nodes, [_, nodes, tensors @ 3, dimensions @ 6])
                if *nodes == slots && tensors.checked_mul(*dimensions) == Some(self.width) =>
            {
                Some(slots * self.width)
            }
            (Scope::Program, [_, bytes]) if *bytes == row_bytes(slots) => Some(*bytes),
            (Scope::EveryNode, [_, nodes, width]) if *nodes == slots && *width > 0 => {
                slots.checked_mul(*width)
            }
            _ => None,
        }
    }

    /// Returns the shape that an array of configurations in an npz file must have, in words.
    #[must_use]
    pub fn expected_shape(&self, slots: usize) -> String {
        let width = self.width;
        match self.scope {
            Scope::Kernel => format!("[configurations, {width}]"),
            Scope::Nodes => {
                format!("[configurations, {slots}, {width}], because the graph has {slots} slots")
            }
            Scope::Program => {
                format!(
                    "[configurations, {}], because the graph has {slots} slots",
                    row_bytes(slots)
                )
            }
            Scope::EveryNode => {
                format!("[configurations, {slots}, columns], because the graph has {slots} nodes")
            }
        }
    }
}
