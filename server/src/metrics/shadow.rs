use metrics::Counter;

use super::{family::Family, recorder::Recorder};

const CALLS: Family<Counter, 2> = Family::new(
    "hlorank_shadow_calls_total",
    ["model", "result"],
    "Calls of RankConfigs, and batches of streams, that the stable version scored while there was a shadow: compared, skipped because the shadow was busy, or failed",
);

const PAIRS: Family<Counter, 2> = Family::new(
    "hlorank_shadow_pairs_total",
    ["model", "order"],
    "Pairs of up to 256 configurations of a compared call or batch, by whether the shadow orders them as the stable version does: same or other",
);

/// Metrics of the shadow of a model.
pub struct ShadowSeries {
    /// Calls and batches that the shadow scored too.
    pub compared: Counter,
    /// Calls and batches for which the shadow had no time or memory.
    pub skipped: Counter,
    /// Calls and batches that the shadow could not score.
    pub failed: Counter,
    /// Pairs that both versions order alike.
    pub same_order: Counter,
    /// Pairs that they order differently.
    pub other_order: Counter,
}

impl ShadowSeries {
    pub(super) fn new(recorder: &Recorder, model: &str) -> Self {
        let calls = |result| CALLS.series(recorder, [model, result]);
        let pairs = |order| PAIRS.series(recorder, [model, order]);
        Self {
            compared: calls("compared"),
            skipped: calls("skipped"),
            failed: calls("failed"),
            same_order: pairs("same"),
            other_order: pairs("other"),
        }
    }
}
