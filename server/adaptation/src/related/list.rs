use std::sync::Arc;

use hlorank_graph::InstanceFeatures;

use super::{super::Measurements, basis::SourceKind};

/// The measurements of a graph on a target.
#[derive(Clone, Debug, Default)]
pub struct RelatedList {
    /// The features of its instance; empty if the instance has none.
    pub features: Arc<InstanceFeatures>,
    /// The number of the other target; `None` on the call's own.
    pub other_target: Option<usize>,
    /// What was measured.
    pub measurements: Measurements,
}

/// Minimum number of measured configurations of another target, and of all instances; and of a target's own that others are compared with.
pub(super) const ENOUGH: usize = 5;

/// Minimum number of measured configurations of a kernel.
const MIN_OF_KERNEL: usize = 3;

impl RelatedList {
    /// The number of its source: each other target is one, and all instances or all kernels are one.
    pub fn source(&self, kind: SourceKind) -> usize {
        match kind {
            SourceKind::Targets => self.other_target.unwrap_or(0),
            SourceKind::Instances | SourceKind::Kernels => 0,
        }
    }

    pub(super) fn is_enough(&self, kind: SourceKind) -> bool {
        let measured = self.measurements.measured();
        match kind {
            SourceKind::Instances => measured > 0,
            SourceKind::Kernels => measured >= MIN_OF_KERNEL,
            SourceKind::Targets => measured >= ENOUGH && self.measurements.teach(),
        }
    }
}
