use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Holds every series, and renders them in Prometheus' text format.
pub struct Recorder {
    prometheus: PrometheusRecorder,
    handle: PrometheusHandle,
}

/// Upper bounds of the histogram buckets in seconds, from the overhead of a call to the longest calls.
const BUCKETS: [f64; 20] = [
    10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3,
    250e-3, 500e-3, 1.0, 2.5, 5.0, 10.0, 30.0,
];

impl Recorder {
    pub(super) fn new() -> Self {
        let builder = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)
            .expect("the list of buckets is not empty");
        let prometheus = builder.build_recorder();
        Self {
            handle: prometheus.handle(),
            prometheus,
        }
    }

    pub(super) fn prometheus(&self) -> &PrometheusRecorder {
        &self.prometheus
    }

    pub(super) fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves the samples of histograms into their buckets. Until then, each sample takes memory.
    pub(super) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}
