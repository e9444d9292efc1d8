use crate::{Target, mutate::mutate_bytes, reading::check_batch};

/// A `ConfigBatch` in any form. It is read as if prost had decoded it, without decoding it; a batch reads the same from every form,
/// and limits hold exactly.
pub const CONFIGURATIONS: Target = Target {
    name: "configurations",
    mutate: mutate_bytes,
    read: check_batch,
};
