use crate::{Target, mutate::mutate_message, reading::check_batch};

/// A `ConfigBatch`, packed: what is read is the same in every form, and holds the limits exactly.
pub const PACKED_CONFIGURATIONS: Target =
    Target { name: "packed_configurations", mutate: mutate_message, read: check_batch };
