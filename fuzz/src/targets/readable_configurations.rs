use crate::{Target, mutate::mutate_bytes, reading::check_batch};

/// A `ConfigBatch` in a readable form. It is read as if prost had decoded it, without decoding it; a batch reads the same
/// from every form, and limits hold exactly.
pub const READABLE_CONFIGURATIONS: Target = Target {
    name: "readable_configurations",
    mutate: mutate_bytes,
    read: check_batch,
};
