use std::{collections::HashMap, time::Duration};

use hlorank_proto::methods::METHODS;
use metrics::{Counter, Gauge, Histogram};

use super::{
    calls::CallSeries,
    recorder::{Recorder, series, set},
};
use crate::{
    model::{ModelState, REJECTION_REASONS, Rejection},
    outcome::Reuse,
};

/// Metrics of one model.
pub struct ModelSeries {
    /// Metrics of its calls, by the name of each method that selects a model.
    pub calls: HashMap<&'static str, CallSeries>,
    /// Metrics of what it computes.
    pub work: WorkSeries,
    /// Metrics of the model's versions.
    pub versions: VersionSeries,
}

series! {
    /// Metrics of what one model computes.
    pub struct WorkSeries {
        /// Scored configurations
        configs: Counter = "hlorank_configs_total",
        /// Rankings of only the first configurations, which allow_partial permits if the deadline is too short for all of them
        pub partial_rankings: Counter = "hlorank_partial_rankings_total",
        /// Scored configurations without the duplicates in their batch
        distinct_configs: Counter = "hlorank_distinct_configs_total",
        /// Pairs of segment and configuration in scored batches, before deduplication
        segment_rows: Counter = "hlorank_segment_rows_total",
        /// Distinct rows of scored batches that were evaluated for that batch
        rows_evaluated: Counter = "hlorank_rows_evaluated_total",
        /// Distinct rows of scored batches that were evaluated for another call, earlier or at the same time
        rows_cached: Counter = "hlorank_rows_cached_total",
        /// Failed runs of a model's ONNX files. If rows of several calls fail together, they are retried in parts
        pub failed_runs: Counter = "hlorank_model_failed_runs_total",
        /// Runs that did not end although they were stopped. The thread is left behind and replaced, and the version no longer serves
        pub abandoned_runs: Counter = "hlorank_abandoned_runs_total",
    }
}

/// Metrics of the versions of one model.
pub struct VersionSeries {
    /// One gauge per state, in the order of [`ModelState::ALL`].
    states: [Gauge; ModelState::ALL.len()],
    stable: Gauge,
    canary: Gauge,
    loaded: Counter,
    rejected: Counter,
}

/// Metrics of loading versions, over all models.
pub struct LoadingSeries {
    rejections: HashMap<&'static str, Counter>,
    load_seconds: Histogram,
    /// Time of each change of the serving versions.
    pub swap_seconds: Histogram,
}

impl ModelSeries {
    pub(super) fn new(recorder: &Recorder, model: &str) -> Self {
        // Methods that select no model would have series that stay 0 for every model.
        let selecting = METHODS.iter().filter(|method| method.selects_model);
        let calls =
            selecting.map(|method| (method.name, CallSeries::new(recorder, method.name, model)));
        Self {
            calls: calls.collect(),
            work: WorkSeries::new(recorder, &[("model", model)]),
            versions: VersionSeries::new(recorder, model),
        }
    }
}

impl WorkSeries {
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

impl VersionSeries {
    fn new(recorder: &Recorder, model: &str) -> Self {
        let state = |state: ModelState| {
            recorder.series(
                "hlorank_model_versions",
                "Versions of a model by life-cycle state",
                &[("model", model), ("state", state.name())],
            )
        };
        let loads = |result| {
            recorder.series(
                "hlorank_model_loads_total",
                "Attempts to load a version: loaded, or rejected by a check",
                &[("model", model), ("result", result)],
            )
        };
        let gauge = |name, help| recorder.series(name, help, &[("model", model)]);
        Self {
            states: ModelState::ALL.map(state),
            stable: gauge(
                "hlorank_model_stable_version",
                "Version that answers requests by default; 0 if there is none",
            ),
            canary: gauge(
                "hlorank_model_canary_version",
                "Version that serves a share of the graphs as the canary; 0 if there is none",
            ),
            loaded: loads("loaded"),
            rejected: loads("rejected"),
        }
    }

    /// Sets the number of versions in each state, the stable version and the canary.
    pub fn set_versions(&self, states: &[ModelState], stable: Option<u64>, canary: Option<u64>) {
        for (gauge, state) in self.states.iter().zip(ModelState::ALL) {
            let count = states.iter().filter(|other| **other == state).count();
            set(gauge, count as u64);
        }
        set(&self.stable, stable.unwrap_or(0));
        set(&self.canary, canary.unwrap_or(0));
    }
}

impl LoadingSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let rejections = REJECTION_REASONS.map(|reason| {
            let counter = recorder.series(
                "hlorank_model_rejections_total",
                "Rejected versions, by the first check that failed",
                &[("reason", reason)],
            );
            (reason, counter)
        });
        Self {
            rejections: rejections.into(),
            load_seconds: recorder.series(
                "hlorank_model_load_duration_seconds",
                "Time to read, check and warm up a version, including rejected versions",
                &[],
            ),
            swap_seconds: recorder.series(
                "hlorank_model_swap_duration_seconds",
                "Time to publish a change of the serving versions to requests",
                &[],
            ),
        }
    }

    /// Counts an attempt to load a version of a model.
    pub fn attempted(
        &self,
        model: &VersionSeries,
        rejection: Option<&Rejection>,
        duration: Duration,
    ) {
        self.load_seconds.record(duration);
        let Some(rejection) = rejection else {
            return model.loaded.increment(1);
        };
        model.rejected.increment(1);
        if let Some(counter) = self.rejections.get(rejection.reason) {
            counter.increment(1);
        }
    }
}
