use hlorank_graph::{LAYOUT_VALUES, TILE_FEATURES};
use ort::{session::SessionInputValue, value::TensorRef};

/// The input `config` of `encoder.onnx`, and of `model.onnx`.
pub enum ConfigInput {
    /// `[rows, nodes, 18]` for an encoder: −2 where a node is not configurable, else −1..5; `[configs, slots, 18]`
    /// for a whole graph.
    Layout(Vec<i64>),
    /// `[rows, 24]`.
    Tile(Vec<f32>),
}

impl ConfigInput {
    /// As ONNX Runtime takes it, without a copy; `nodes` counts those, or the slots, of a layout.
    pub(super) fn value(&self, rows: usize, nodes: usize) -> ort::Result<SessionInputValue<'_>> {
        Ok(match self {
            Self::Layout(values) => {
                TensorRef::from_array_view(([rows, nodes, LAYOUT_VALUES], values.as_slice()))?.into()
            }
            Self::Tile(values) => {
                TensorRef::from_array_view(([rows, TILE_FEATURES], values.as_slice()))?.into()
            }
        })
    }
}
