use hlorank_graph::escaped;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Holds every series, and renders them in Prometheus' text format.
///
/// A metric has a name, which begins with `hlorank_` and ends with the base unit or, for a counter, with `_total`, and a help
/// text. Its series differ in their labels. A new series is zero.
pub(super) struct Recorder {
    prometheus: PrometheusRecorder,
    handle: PrometheusHandle,
}

/// The name and the value of each label.
type Labels<'a> = &'a [(&'static str, &'a str)];

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

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

    // The help text is registered with every series, because the recorder of the exporter knows nothing of metrics.

    pub(super) fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
    ) -> Counter {
        let named = KeyName::from_const_str(name);
        self.prometheus.describe_counter(named, None, help.into());
        self.prometheus
            .register_counter(&key(name, labels), &METADATA)
    }

    pub(super) fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
    ) -> Gauge {
        let named = KeyName::from_const_str(name);
        self.prometheus.describe_gauge(named, None, help.into());
        self.prometheus
            .register_gauge(&key(name, labels), &METADATA)
    }

    pub(super) fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
    ) -> Histogram {
        let named = KeyName::from_const_str(name);
        self.prometheus.describe_histogram(named, None, help.into());
        self.prometheus
            .register_histogram(&key(name, labels), &METADATA)
    }

    pub(super) fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves the samples of histograms into their buckets. Until then, each sample takes memory.
    pub(super) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn key(name: &'static str, labels: Labels<'_>) -> Key {
    let labels = labels
        .iter()
        // A target is named by clients.
        .map(|&(label, value)| Label::new(label, escaped(value).into_owned()));
    Key::from_parts(name, labels.collect::<Vec<_>>())
}

/// Sets a gauge to a count.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, and no count here reaches that"
)]
pub fn set(gauge: &Gauge, count: u64) {
    gauge.set(count as f64);
}
