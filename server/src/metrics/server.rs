use std::{collections::HashMap, sync::Arc, time::Duration};

use metrics::Gauge;
use parking_lot::RwLock;

use super::{
    calls::Methods,
    measurements::{QualitySeries, StoreSeries},
    model::{LoadingSeries, ModelSeries},
    process::ProcessSeries,
    recorder::Recorder,
    security::SecuritySeries,
    work::{CacheSeries, CacheSizes, GraphCacheSeries, LoadSeries, StageSeries},
};

/// The metrics of one server.
pub struct Metrics {
    /// Calls to our services.
    pub methods: Methods,
    /// Time spent in each stage.
    pub stages: StageSeries,
    /// The graph cache.
    pub graph_cache: GraphCacheSeries,
    /// The embedding cache.
    pub embedding_cache: CacheSeries,
    /// Sizes of the other caches.
    pub other_caches: CacheSizes,
    /// Work that is in flight and queued.
    pub load: LoadSeries,
    /// Attempts to load model versions.
    pub loading: LoadingSeries,
    /// Connections, certificates and tokens.
    pub security: SecuritySeries,
    /// The store of measurements.
    pub store: Arc<StoreSeries>,
    /// How well model versions rank what clients measured.
    pub quality: QualitySeries,
    models: RwLock<HashMap<String, Arc<ModelSeries>>>,
    process: ProcessSeries,
    recorder: Arc<Recorder>,
}

/// Interval at which samples of histograms are moved into their buckets if `/metrics` is not read.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

impl Metrics {
    /// Returns metrics that are all zero, without any model. They count the failed calls of each of `reasons`, and
    /// those of all other reasons together.
    #[must_use]
    pub fn new(reasons: &[&'static str]) -> Self {
        let recorder = Arc::new(Recorder::new());
        let digest = hlorank_graph::FeatureSet::TPUGRAPHS.digest().to_string();
        let build: Gauge = recorder.series(
            "hlorank_build_info",
            "Always 1; the labels are the version of the server and the digest of the features that it computes",
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                ("feature_digest", &digest),
            ],
        );
        build.set(1.0);
        Self {
            methods: Methods::new(&recorder, reasons),
            stages: StageSeries::new(&recorder, &[]),
            other_caches: CacheSizes::new(&recorder),
            graph_cache: GraphCacheSeries::new(&recorder),
            embedding_cache: CacheSeries::new(&recorder, "embeddings"),
            load: LoadSeries::new(&recorder, &[]),
            loading: LoadingSeries::new(&recorder),
            security: SecuritySeries::new(&recorder),
            store: Arc::new(StoreSeries::new(&recorder, &[])),
            quality: QualitySeries::new(&recorder),
            models: RwLock::default(),
            process: ProcessSeries::new(&recorder, &[]),
            recorder,
        }
    }

    /// Returns the metrics of a model of the registry. They are registered on the first call with its name, and stay
    /// after the model is removed.
    pub fn model(&self, name: &str) -> Arc<ModelSeries> {
        if let Some(series) = self.models.read().get(name) {
            return Arc::clone(series);
        }
        // Another call may have added the model between the two locks, which `or_insert_with`
        // finds.
        let mut models = self.models.write();
        let new = || Arc::new(ModelSeries::new(&self.recorder, name));
        Arc::clone(models.entry(name.to_owned()).or_insert_with(new))
    }

    /// Renders every series in Prometheus' text format, with the current values of the process. Other gauges have the values that were set last.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.update();
        self.recorder.render()
    }

    /// Keeps the memory of histograms bounded, until the metrics are dropped.
    pub async fn keep_up(self: Arc<Self>) {
        // The task must not keep the metrics of a server that has ended.
        let metrics = Arc::downgrade(&self);
        drop(self);
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            let Some(metrics) = metrics.upgrade() else {
                return;
            };
            metrics.recorder.run_upkeep();
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(&[])
    }
}
