use std::{collections::HashMap, time::Duration};

use metrics::{Counter, Gauge, Histogram};

use super::{Family, Recorder};
use crate::model::{ModelState, REJECTION_REASONS, Rejection};

const VERSIONS: Family<Gauge, 2> = Family::new(
    "hlorank_model_versions",
    ["model", "state"],
    "Versions of a model in each state of their life",
);

const STABLE_VERSION: Family<Gauge, 1> = Family::new(
    "hlorank_model_stable_version",
    ["model"],
    "The version that requests reach unless they ask for another; 0 while there is none",
);

const CANARY_VERSION: Family<Gauge, 1> = Family::new(
    "hlorank_model_canary_version",
    ["model"],
    "The version that serves a part of the graphs; 0 while there is none",
);

const LOADS: Family<Counter, 2> = Family::new(
    "hlorank_model_loads_total",
    ["model", "result"],
    "Versions that were tried: loaded, or rejected by a check",
);

const REJECTIONS: Family<Counter, 1> = Family::new(
    "hlorank_model_rejections_total",
    ["reason"],
    "Versions that were rejected, by the first check that failed",
);

const LOAD_SECONDS: Family<Histogram, 0> = Family::new(
    "hlorank_model_load_duration_seconds",
    [],
    "Reading, checking and warming up a version, rejected ones included",
);

const SWAP_SECONDS: Family<Histogram, 0> =
    Family::new("hlorank_model_swap_duration_seconds", [], "Publishing a change of what serves to requests");

/// Versions that are tried, of all models.
pub struct LoadingSeries {
    rejections: HashMap<&'static str, Counter>,
    load_seconds: Histogram,
    swap_seconds: Histogram,
}

/// The versions of one model.
pub struct VersionSeries {
    /// In the order of [`ModelState::ALL`].
    states: [Gauge; ModelState::ALL.len()],
    stable: Gauge,
    canary: Gauge,
    loaded: Counter,
    rejected: Counter,
}

impl LoadingSeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let rejections = REJECTION_REASONS.map(|reason| (reason, REJECTIONS.series(recorder, [reason])));
        Self {
            rejections: rejections.into(),
            load_seconds: LOAD_SECONDS.series(recorder, []),
            swap_seconds: SWAP_SECONDS.series(recorder, []),
        }
    }

    /// Counts a version of a model that was tried.
    pub fn tried(&self, model: &VersionSeries, rejection: Option<&Rejection>, took: Duration) {
        self.load_seconds.record(took);
        let Some(rejection) = rejection else { return model.loaded.increment(1) };
        model.rejected.increment(1);
        if let Some(counter) = self.rejections.get(rejection.reason) {
            counter.increment(1);
        }
    }

    /// Records a change of what serves.
    pub fn swapped(&self, took: Duration) {
        self.swap_seconds.record(took);
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

    /// Shows the states of all versions, and which of them serve.
    pub fn show(&self, states: &[ModelState], stable: Option<u64>, canary: Option<u64>) {
        for (gauge, state) in self.states.iter().zip(ModelState::ALL) {
            super::set(gauge, states.iter().filter(|of_version| **of_version == state).count() as u64);
        }
        super::set(&self.stable, stable.unwrap_or(0));
        super::set(&self.canary, canary.unwrap_or(0));
    }
}
