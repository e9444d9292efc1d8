use std::time::Instant;

use crate::compute::Class;

/// The terms on which configurations are scored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Configurations that would not be scored by then are refused.
    pub deadline: Option<Instant>,
    /// Whether the work is done before other work.
    pub class: Class,
    /// Whether the configurations belong to a request some of which was scored. They are accepted however much work is
    /// queued.
    pub continues_request: bool,
}
