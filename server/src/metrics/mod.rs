//! What the server counts, for Prometheus: `/metrics` shows it, and `deploy/METRICS.md` lists it.
//!
//! A metric is a [`Family`], a constant beside the struct that holds its series: name, labels and help are nowhere
//! else. Its series are registered when the struct is made, so that they are there, at zero, before anything happens.
//! To add one, write the constant, register it in the struct's `new`, count with the field, and add its line to
//! `deploy/METRICS.md`: a test prints the line that is missing.
//!
//! ```ignore
//! const RELOADS: Family<Counter, 2> = Family::new("hlorank_model_reloads_total", ["model", "result"], "Reloads…");
//! // What belongs to one model goes into `ModelSeries::new`:
//! let failed = RELOADS.series(recorder, [model, "failed"]);
//! // Elsewhere, with the `Arc<Metrics>`:
//! metrics.model(name).reloads.failed.increment(1);
//! ```
//!
//! Servers of one process each have metrics of their own, so there is no global recorder. Values of labels come from
//! lists of ours, and names of models from the registry: never from a request.

mod caches;
mod calls;
mod family;
mod life_cycle;
mod load;
mod model;
mod recorder;
mod security;
mod stages;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

pub use caches::{CacheSeries, GraphCacheSeries};
pub use calls::{CallSeries, Method, Methods, code_name};
pub use family::{Family, Handle, set};
pub use life_cycle::{LoadingSeries, VersionSeries};
pub use load::LoadSeries;
use metrics::Gauge;
pub use model::ModelSeries;
pub use recorder::Recorder;
pub use security::{ConnectionSeries, ReloadSeries, SecuritySeries};
pub use stages::StageSeries;

/// Every metric of one server.
pub struct Metrics {
    /// Calls of our services.
    pub methods: Methods,
    /// Where time goes.
    pub stages: StageSeries,
    /// The graph cache.
    pub graph_cache: GraphCacheSeries,
    /// The embedding cache.
    pub embedding_cache: CacheSeries,
    /// What is in progress and what waits.
    pub load: LoadSeries,
    /// Versions of models that are tried.
    pub loading: LoadingSeries,
    /// Connections, certificates and tokens.
    pub security: SecuritySeries,
    models: RwLock<HashMap<String, Arc<ModelSeries>>>,
    recorder: Recorder,
}

/// The value of the label `model` where there is none.
const NO_MODEL: &str = "none";

const BUILD_INFO: Family<Gauge, 2> = Family::new(
    "hlorank_build_info",
    ["version", "feature_digest"],
    "Always 1: the version of the server, and the digest of the features that it computes",
);

/// How often samples of histograms move into their buckets where nobody asks for them.
const UPKEEP: Duration = Duration::from_secs(5);

impl Metrics {
    /// Everything at zero; no model yet.
    #[must_use]
    pub fn new() -> Self {
        let recorder = Recorder::new();
        let digest = hlorank_graph::feature_digest().to_string();
        BUILD_INFO.series(&recorder, [env!("CARGO_PKG_VERSION"), &digest]).set(1.0);
        Self {
            methods: Methods::new(&recorder),
            stages: StageSeries::new(&recorder),
            graph_cache: GraphCacheSeries::new(&recorder),
            embedding_cache: CacheSeries::of_embeddings(&recorder),
            load: LoadSeries::new(&recorder),
            loading: LoadingSeries::new(&recorder),
            security: SecuritySeries::new(&recorder),
            models: RwLock::default(),
            recorder,
        }
    }

    /// The series of a model of the registry, registered at the first call with its name; they stay when the model
    /// goes.
    pub fn model(&self, name: &str) -> Arc<ModelSeries> {
        if let Some(series) = self.models.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(series);
        }
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(ModelSeries::new(&self.recorder, name));
        Arc::clone(models.entry(name.to_owned()).or_insert_with(new))
    }

    /// As Prometheus reads it, gauges as they were set last.
    #[must_use]
    pub fn render(&self) -> String {
        self.recorder.render()
    }

    /// Keeps histograms from growing until the metrics are dropped.
    pub async fn keep_up(self: Arc<Self>) {
        let metrics = Arc::downgrade(&self);
        drop(self);
        loop {
            tokio::time::sleep(UPKEEP).await;
            let Some(metrics) = metrics.upgrade() else { return };
            metrics.recorder.run_upkeep();
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
