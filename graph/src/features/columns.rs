/// Columns of a node in order: the name of each group of adjacent columns, and its width.
pub(super) const NODE_COLUMNS: [(&str, usize); 32] = [
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
];

/// Columns of a configuration, which a model reads next to those of the nodes.
pub(super) const CONFIGURATION_COLUMNS: [(&str, usize); 3] =
    [("config.layout", 18), ("config.tile", 24), ("config.layout.values", 8)];
