use std::collections::HashMap;

use hlorank_proto::methods::METHODS;
use metrics::Counter;

use super::{calls::CallSeries, family::Family, life_cycle::VersionSeries, recorder::Recorder};
use crate::outcome::Reuse;

const CONFIGS: Family<Counter, 1> =
    Family::new("hlorank_configs_total", ["model"], "Scored configurations");

const DISTINCT_CONFIGS: Family<Counter, 1> = Family::new(
    "hlorank_distinct_configs_total",
    ["model"],
    "Scored configurations without the duplicates in their batch",
);

const SEGMENT_ROWS: Family<Counter, 1> = Family::new(
    "hlorank_segment_rows_total",
    ["model"],
    "Pairs of segment and configuration in scored batches, before deduplication",
);

const PARTIAL_RANKINGS: Family<Counter, 1> = Family::new(
    "hlorank_partial_rankings_total",
    ["model"],
    "Rankings of only the first configurations, which allow_partial permits if the deadline is too short for all of them",
);

const ROWS_EVALUATED: Family<Counter, 1> = Family::new(
    "hlorank_rows_evaluated_total",
    ["model"],
    "Distinct rows of scored batches that were evaluated for that batch",
);

const ROWS_CACHED: Family<Counter, 1> = Family::new(
    "hlorank_rows_cached_total",
    ["model"],
    "Distinct rows of scored batches that were evaluated for another call, earlier or at the same time",
);

const FAILED_RUNS: Family<Counter, 1> = Family::new(
    "hlorank_model_failed_runs_total",
    ["model"],
    "Failed runs of a model's ONNX files. If rows of several calls fail together, they are retried in parts",
);

const ABANDONED_RUNS: Family<Counter, 1> = Family::new(
    "hlorank_abandoned_runs_total",
    ["model"],
    "Runs that did not end although they were stopped. The thread is left behind and replaced, and the version no longer serves",
);

/// Metrics of one model.
pub struct ModelSeries {
    /// By the name of each method that selects a model.
    calls: HashMap<&'static str, CallSeries>,
    configs: Counter,
    partial_rankings: Counter,
    distinct_configs: Counter,
    segment_rows: Counter,
    rows_evaluated: Counter,
    rows_cached: Counter,
    /// Failed runs of ONNX Runtime.
    pub failed_runs: Counter,
    /// Runs that were left behind with their thread.
    pub abandoned_runs: Counter,
    /// Metrics of the model's versions.
    pub versions: VersionSeries,
}

impl ModelSeries {
    pub(super) fn new(recorder: &Recorder, model: &str) -> Self {
        let counter = |family: Family<Counter, 1>| family.series(recorder, [model]);
        // Methods that select no model would have series that stay 0 for every model.
        let selecting = METHODS.iter().filter(|method| method.selects_model);
        let calls =
            selecting.map(|method| (method.name, CallSeries::new(recorder, method.name, model)));
        Self {
            calls: calls.collect(),
            configs: counter(CONFIGS),
            partial_rankings: counter(PARTIAL_RANKINGS),
            distinct_configs: counter(DISTINCT_CONFIGS),
            segment_rows: counter(SEGMENT_ROWS),
            rows_evaluated: counter(ROWS_EVALUATED),
            rows_cached: counter(ROWS_CACHED),
            failed_runs: counter(FAILED_RUNS),
            abandoned_runs: counter(ABANDONED_RUNS),
            versions: VersionSeries::new(recorder, model),
        }
    }

    /// Returns the metrics of a method's calls, if it is a method that selects a model.
    pub(super) fn calls(&self, method: &str) -> Option<&CallSeries> {
        self.calls.get(method)
    }

    /// Counts a partial ranking.
    pub fn ranked_in_part(&self) {
        self.partial_rankings.increment(1);
    }

    /// Counts the configurations and rows of a scored batch.
    pub fn scored(&self, reuse: Reuse) {
        self.configs.increment(reuse.configs as u64);
        self.distinct_configs
            .increment(reuse.distinct_configs as u64);
        self.segment_rows.increment(reuse.segment_rows as u64);
        self.rows_evaluated.increment(reuse.rows_evaluated as u64);
        self.rows_cached.increment(reuse.rows_cached() as u64);
    }
}
