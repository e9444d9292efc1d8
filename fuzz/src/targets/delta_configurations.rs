use crate::{Target, mutate::mutate_bytes, reading::check_batch};

/// A `ConfigBatch` as changes to a base. A batch reads the same from every form, and limits hold exactly.
pub const DELTA_CONFIGURATIONS: Target = Target {
    name: "delta_configurations",
    mutate: mutate_bytes,
    read: check_batch,
};
