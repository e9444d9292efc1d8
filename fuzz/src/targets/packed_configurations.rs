use crate::{Target, mutate::mutate_bytes, reading::check_batch};

/// A packed `ConfigBatch`. A batch reads the same from every form, and limits hold exactly.
pub const PACKED_CONFIGURATIONS: Target = Target {
    name: "packed_configurations",
    mutate: mutate_bytes,
    read: check_batch,
};
