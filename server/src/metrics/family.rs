use std::marker::PhantomData;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder as _, SharedString,
};
use metrics_exporter_prometheus::PrometheusRecorder;

use super::recorder::Recorder;

/// The definition of a metric: name, label names and help text. Its series differ in the values of `LABELS` labels, and
/// are updated through a handle `H`.
pub struct Family<H, const LABELS: usize> {
    name: &'static str,
    labels: [&'static str; LABELS],
    help: &'static str,
    handle: PhantomData<H>,
}

/// Updates one series, from any thread; cheap to clone and to use.
pub trait Handle {
    /// Registers the help text of a metric.
    fn describe(recorder: &PrometheusRecorder, name: KeyName, help: SharedString);

    /// Registers a series and returns its handle.
    fn register(recorder: &PrometheusRecorder, key: &Key, metadata: &Metadata<'_>) -> Self;
}

impl<H: Handle, const LABELS: usize> Family<H, LABELS> {
    /// Defines a metric. `name` begins with `hlorank_`, and ends with the base unit or, for a counter, with `_total`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        labels: [&'static str; LABELS],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            labels,
            help,
            handle: PhantomData,
        }
    }

    /// Returns the series with these label values. A new series is zero.
    #[must_use]
    pub fn series(&self, recorder: &Recorder, values: [&str; LABELS]) -> H {
        let recorder = recorder.prometheus();
        let labels = self
            .labels
            .iter()
            .zip(values)
            .map(|(&label, value)| Label::new(label, value.to_owned()));
        let key = Key::from_parts(self.name, labels.collect::<Vec<_>>());
        // The help text is registered with every series, because the recorder knows nothing of
        // families.
        H::describe(
            recorder,
            KeyName::from_const_str(self.name),
            self.help.into(),
        );
        H::register(
            recorder,
            &key,
            &Metadata::new(module_path!(), Level::INFO, None),
        )
    }
}

impl Handle for Counter {
    fn describe(recorder: &PrometheusRecorder, name: KeyName, help: SharedString) {
        recorder.describe_counter(name, None, help);
    }

    fn register(recorder: &PrometheusRecorder, key: &Key, metadata: &Metadata<'_>) -> Self {
        recorder.register_counter(key, metadata)
    }
}

impl Handle for Gauge {
    fn describe(recorder: &PrometheusRecorder, name: KeyName, help: SharedString) {
        recorder.describe_gauge(name, None, help);
    }

    fn register(recorder: &PrometheusRecorder, key: &Key, metadata: &Metadata<'_>) -> Self {
        recorder.register_gauge(key, metadata)
    }
}

impl Handle for Histogram {
    fn describe(recorder: &PrometheusRecorder, name: KeyName, help: SharedString) {
        recorder.describe_histogram(name, None, help);
    }

    fn register(recorder: &PrometheusRecorder, key: &Key, metadata: &Metadata<'_>) -> Self {
        recorder.register_histogram(key, metadata)
    }
}

/// Sets a gauge to a count.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, and no count here reaches that"
)]
pub fn set(gauge: &Gauge, count: u64) {
    gauge.set(count as f64);
}
