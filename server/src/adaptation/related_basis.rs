/// What related lists say, and whether they are used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RelatedBasis {
    /// Number of lists that have enough measurements, if several are judged together.
    pub(crate) lists: usize,
    /// Number of distinct configurations that were measured or failed.
    pub(crate) measured: usize,
    /// Kendall's tau of times and what other lists, or for the target's own times these lists, predict of them.
    pub(crate) agreement: f64,
    /// The same of the times and the model's scores, if it is compared.
    pub(crate) score_tau: f64,
    /// `None` if they are used.
    pub(crate) refusal: Option<Refusal>,
}

/// Why related lists are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too few lists or configurations have a time, or all times are equal.
    TooFew,
    /// Others predict them no better than chance may.
    NoBetterThanChance,
    /// They predict each other no better than the model does.
    NoBetterThanModel,
    /// The target's own measurements contradict them.
    Contradicted,
}
