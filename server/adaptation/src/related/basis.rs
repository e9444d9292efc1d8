use crate::Prior;

/// What related lists are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Other instances of the set of the graph.
    Instances,
    /// Kernels of the same structure.
    Kernels,
    /// The same graph on other targets.
    Targets,
}

impl SourceKind {
    /// How much ln(seconds) rises per unit of score before lists teach. Scores of different graphs have no common level.
    pub(super) fn slope(self, prior: Prior) -> f64 {
        match self {
            Self::Targets => prior.slope,
            Self::Instances | Self::Kernels => 0.0,
        }
    }
}

/// What a source of related lists says, and whether it is used. Each other target is a source, and all instances or all kernels are one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RelatedBasis {
    /// Number of lists that have enough measurements.
    pub lists: usize,
    /// Number of distinct configurations that were measured or failed.
    pub measured: usize,
    /// Kendall's tau of times and what other lists, or for the graph's own times this source, predict of them.
    pub agreement: f64,
    /// The same of the times of kernels and the model's scores; else 0.
    pub score_tau: f64,
    /// `None` if it is used.
    pub refusal: Option<Refusal>,
}

/// Why related lists are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too few lists or configurations have a time, or all times are equal.
    TooFew,
    /// Others predict them no better than chance may.
    NoBetterThanChance,
    /// They predict each other no better than the model does.
    NoBetterThanModel,
    /// The target's own measurements contradict them.
    Contradicted,
}
