use metrics::Counter;

use super::{CallSeries, Family, Recorder, VersionSeries, calls::RANKING};
use crate::outcome::Reuse;

const CONFIGS: Family<Counter, 1> =
    Family::new("hlorank_configs_total", ["model"], "Configurations that were scored");

const DISTINCT_CONFIGS: Family<Counter, 1> = Family::new(
    "hlorank_distinct_configs_total",
    ["model"],
    "Scored configurations that differed from the others of their batch",
);

const SEGMENT_ROWS: Family<Counter, 1> = Family::new(
    "hlorank_segment_rows_total",
    ["model"],
    "Pairs of segment and configuration that were scored, before anything is shared",
);

const PARTIAL_RANKINGS: Family<Counter, 1> = Family::new(
    "hlorank_partial_rankings_total",
    ["model"],
    "Rankings of the first configurations alone, as allow_partial asks for where there is no time for all",
);

const ROWS_EVALUATED: Family<Counter, 1> = Family::new(
    "hlorank_rows_evaluated_total",
    ["model"],
    "Distinct rows of scored batches that were evaluated for them",
);

const ROWS_CACHED: Family<Counter, 1> = Family::new(
    "hlorank_rows_cached_total",
    ["model"],
    "Distinct rows of scored batches that others had evaluated, before or at the same time",
);

const FAILED_RUNS: Family<Counter, 1> = Family::new(
    "hlorank_model_failed_runs_total",
    ["model"],
    "Runs of a model's ONNX files that failed; rows of several calls that fail together are run again in parts",
);

/// What is counted of one model.
pub struct ModelSeries {
    /// In the order of [`RANKING`].
    calls: [CallSeries; RANKING.len()],
    configs: Counter,
    partial_rankings: Counter,
    distinct_configs: Counter,
    segment_rows: Counter,
    rows_evaluated: Counter,
    rows_cached: Counter,
    /// Of ONNX Runtime.
    pub failed_runs: Counter,
    /// Its versions.
    pub versions: VersionSeries,
}

impl ModelSeries {
    pub(super) fn new(recorder: &Recorder, model: &str) -> Self {
        let counter = |family: Family<Counter, 1>| family.series(recorder, [model]);
        Self {
            calls: RANKING.map(|method| CallSeries::new(recorder, method, model)),
            configs: counter(CONFIGS),
            partial_rankings: counter(PARTIAL_RANKINGS),
            distinct_configs: counter(DISTINCT_CONFIGS),
            segment_rows: counter(SEGMENT_ROWS),
            rows_evaluated: counter(ROWS_EVALUATED),
            rows_cached: counter(ROWS_CACHED),
            failed_runs: counter(FAILED_RUNS),
            versions: VersionSeries::new(recorder, model),
        }
    }

    /// Calls of a method that selects a model.
    pub(super) fn calls(&self, method: &str) -> Option<&CallSeries> {
        let place = RANKING.iter().position(|name| *name == method)?;
        Some(&self.calls[place])
    }

    /// Counts a ranking of fewer configurations than were sent.
    pub fn ranked_in_part(&self) {
        self.partial_rankings.increment(1);
    }

    /// Counts a batch that was scored.
    pub fn scored(&self, reuse: Reuse) {
        self.configs.increment(reuse.configs as u64);
        self.distinct_configs.increment(reuse.distinct_configs as u64);
        self.segment_rows.increment(reuse.segment_rows as u64);
        self.rows_evaluated.increment(reuse.rows_evaluated as u64);
        self.rows_cached.increment(reuse.rows_cached() as u64);
    }
}
