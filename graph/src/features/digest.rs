use crate::{Digest, opcode};

/// Raised when featurizing changes in a way that the names below do not show.
const FEATURE_VERSION: u32 = 1;

/// Groups of columns in order, with their widths: what [`feature_digest`] covers.
const COLUMNS: [(&str, usize); 35] = [
    ("is_root", 1),
    ("element_size_in_bits", 1),
    ("shape.element_type", 19),
    ("shape.dimensions", 8),
    ("shape.tuple_shapes_size", 1),
    ("parameter_number", 1),
    ("dimensions", 6),
    ("window.size", 8),
    ("window.stride", 8),
    ("window.padding_low", 8),
    ("window.padding_high", 8),
    ("window.window_dilation", 8),
    ("window.base_dilation", 8),
    ("window.window_reversal", 8),
    ("convolution.input_batch_dimension", 1),
    ("convolution.input_feature_dimension", 1),
    ("convolution.input_spatial_dimensions", 4),
    ("convolution.kernel_input_feature_dimension", 1),
    ("convolution.kernel_output_feature_dimension", 1),
    ("convolution.kernel_spatial_dimensions", 4),
    ("convolution.output_batch_dimension", 1),
    ("convolution.output_feature_dimension", 1),
    ("feature_group_count", 1),
    ("batch_group_count", 1),
    ("slice.start", 4),
    ("slice.stride", 4),
    ("slice.limit", 4),
    ("dynamic_slice_sizes", 4),
    ("padding.edge_padding_low", 4),
    ("padding.edge_padding_high", 4),
    ("is_stable", 1),
    ("shape.layout.minor_to_major", 6),
    ("config.layout", 18),
    ("config.tile", 24),
    ("config.layout.values", 8),
];

/// Identifies what the featurizer makes: columns, opcode table and configuration features. A model works only
/// with the featurizer that it was trained with.
#[must_use]
pub fn feature_digest() -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("hlorank-features {FEATURE_VERSION}\n").as_bytes());
    for (name, width) in COLUMNS {
        hasher.update(format!("{name} {width}\n").as_bytes());
    }
    for name in opcode::NAMES {
        hasher.update(format!("{name}\n").as_bytes());
    }
    Digest(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FEATURES;

    #[test]
    fn the_columns_add_up() {
        let node_columns = COLUMNS.iter().filter(|(name, _)| !name.starts_with("config."));
        assert_eq!(node_columns.map(|(_, width)| width).sum::<usize>(), FEATURES);
    }
}
