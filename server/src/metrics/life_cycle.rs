use std::{collections::HashMap, time::Duration};

use metrics::{Counter, Gauge, Histogram};

use super::{
    family::{Family, set},
    recorder::Recorder,
};
use crate::model::{ModelState, REJECTION_REASONS, Rejection};

const VERSIONS: Family<Gauge, 2> = Family::new(
    "hlorank_model_versions",
    ["model", "state"],
    "Versions of a model by life-cycle state",
);

const STABLE_VERSION: Family<Gauge, 1> = Family::new(
    "hlorank_model_stable_version",
    ["model"],
    "Version that answers requests by default; 0 if there is none",
);

const CANARY_VERSION: Family<Gauge, 1> = Family::new(
    "hlorank_model_canary_version",
    ["model"],
    "Version that serves a share of the graphs as the canary; 0 if there is none",
);

const LOADS: Family<Counter, 2> = Family::new(
    "hlorank_model_loads_total",
    ["model", "result"],
    "Attempts to load a version: loaded, or rejected by a check",
);

const REJECTIONS: Family<Counter, 1> = Family::new(
    "hlorank_model_rejections_total",
    ["reason"],
    "Rejected versions, by the first check that failed",
);

const LOAD_SECONDS: Family<Histogram, 0> = Family::new(
    "hlorank_model_load_duration_seconds",
    [],
    "Time to read, check and warm up a version, including rejected versions",
);

const SWAP_SECONDS: Family<Histogram, 0> = Family::new(
    "hlorank_model_swap_duration_seconds",
    [],
    "Time to publish a change of the serving versions to requests",
);

/// Metrics of loading versions, over all models.
pub struct LoadingSeries {
    rejections: HashMap<&'static str, Counter>,
    load_seconds: Histogram,
    swap_seconds: Histogram,
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

impl LoadingSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let rejections =
            REJECTION_REASONS.map(|reason| (reason, REJECTIONS.series(recorder, [reason])));
        Self {
            rejections: rejections.into(),
            load_seconds: LOAD_SECONDS.series(recorder, []),
            swap_seconds: SWAP_SECONDS.series(recorder, []),
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

    /// Records a change of the serving versions.
    pub fn swapped(&self, duration: Duration) {
        self.swap_seconds.record(duration);
    }
}

impl VersionSeries {
    pub(super) fn new(recorder: &Recorder, model: &str) -> Self {
        Self {
            states: ModelState::ALL.map(|state| VERSIONS.series(recorder, [model, state.name()])),
            stable: STABLE_VERSION.series(recorder, [model]),
            canary: CANARY_VERSION.series(recorder, [model]),
            loaded: LOADS.series(recorder, [model, "loaded"]),
            rejected: LOADS.series(recorder, [model, "rejected"]),
        }
    }

    /// Sets the number of versions in each state, the stable version and the canary.
    pub fn set_versions(&self, states: &[ModelState], stable: Option<u64>, canary: Option<u64>) {
        for (gauge, state) in self.states.iter().zip(ModelState::ALL) {
            set(
                gauge,
                states.iter().filter(|other| **other == state).count() as u64,
            );
        }
        set(&self.stable, stable.unwrap_or(0));
        set(&self.canary, canary.unwrap_or(0));
    }
}
