use crate::{Target, mutate::mutate_message, reading::check_batch};

/// A `ConfigBatch`, as changes to a base: what is read is the same in every form, and holds the limits exactly.
pub const DELTA_CONFIGURATIONS: Target =
    Target { name: "delta_configurations", mutate: mutate_message, read: check_batch };
