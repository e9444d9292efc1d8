//! The shape of an array of configurations in an npz file.

use crate::{Kind, Scope, program::row_bytes};

impl Kind {
    /// Number of columns of a slot or node in a row, given those of its feature set; 1 if the values of a row mean the same.
    #[must_use]
    pub fn row_columns(&self, of_set: Option<usize>) -> usize {
        of_set.unwrap_or(self.width).max(1)
    }

    /// Number of values per configuration in an array of this shape, for a graph with this many slots; `None` if the array
    /// has another shape.
    pub(crate) fn row_length(&self, slots: usize, shape: &[usize]) -> Option<usize> {
        match (self.scope, shape) {
            (Scope::Kernel, [_, width]) if *width == self.width => Some(self.width),
            (Scope::Nodes, [_, nodes, width]) if [*nodes, *width] == [slots, self.width] => {
                Some(slots * self.width)
            }
            // The same values, with one axis for the tensors of an entry and one for their
            // dimensions.
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

    /// Returns the shape that the array must have, in words.
    pub(crate) fn expected_shape(&self, slots: usize) -> String {
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
