use std::sync::Arc;

use hlorank_graph::InstanceFeatures;

use crate::adaptation::Measurements;

/// The measurements of one instance on one target.
pub(crate) struct MeasuredInstance {
    pub(crate) features: Arc<InstanceFeatures>,
    /// The number of the other target; `None` on the call's own.
    pub(crate) other_target: Option<usize>,
    pub(crate) measurements: Measurements,
}

impl MeasuredInstance {
    /// The number of its target, of which the call's own is 0.
    pub(super) fn target(&self) -> usize {
        self.other_target.map_or(0, |number| number + 1)
    }
}
