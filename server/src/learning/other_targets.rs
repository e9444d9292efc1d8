use std::sync::Arc;

use crate::adaptation::{Measurements, SourceBasis, Sources, StudiedSources};

/// Maximum number of other targets that a call learns from.
pub(crate) const MAX_OTHER_TARGETS: usize = 16;

/// Other targets whose measurements a call learns from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OtherTargets {
    /// Those of these names; may be none.
    Named(Vec<String>),
    /// All that have measurements of the graph.
    All,
}

/// What another target taught.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetSource {
    pub(crate) target: String,
    pub(crate) basis: SourceBasis,
}

/// The measurements of the call's graph on other targets.
pub(super) struct OtherMeasurements {
    /// In the order of names.
    pub(super) targets: Vec<String>,
    pub(super) studied: Arc<StudiedSources>,
}

impl OtherMeasurements {
    /// What the other targets say that the target's own measurements do not contradict, and what became of each.
    pub(super) fn given(&self, own: &Measurements) -> (Option<Arc<Sources>>, Vec<TargetSource>) {
        let (sources, bases) = self.studied.given(own);
        let described = self.targets.iter().zip(bases);
        let described = described.map(|(target, basis)| TargetSource {
            target: target.clone(),
            basis,
        });
        (sources, described.collect())
    }
}
