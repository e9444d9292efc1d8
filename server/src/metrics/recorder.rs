use hlorank_graph::escaped;
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder as _};
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
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

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

    /// Returns a new series. The help text is registered with every series, because the recorder of the exporter knows nothing of metrics.
    pub(super) fn series<S: Series>(
        &self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
    ) -> S {
        let labels = labels
            .iter()
            // A target is named by clients.
            .map(|&(label, value)| Label::new(label, escaped(value).into_owned()));
        let key = Key::from_parts(name, labels.collect::<Vec<_>>());
        S::register(&self.prometheus, &key, help.trim_start())
    }

    pub(super) fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves the samples of histograms into their buckets. Until then, each sample takes memory.
    pub(super) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// A kind of series.
pub(super) trait Series {
    /// Describes a metric, and returns its series with these labels.
    fn register(recorder: &PrometheusRecorder, key: &Key, help: &'static str) -> Self;
}

macro_rules! kinds {
    ($($kind:ident: $describe:ident, $register:ident;)*) => {
        $(impl Series for $kind {
            fn register(recorder: &PrometheusRecorder, key: &Key, help: &'static str) -> Self {
                recorder.$describe(key.name_shared(), None, help.into());
                recorder.$register(key, &METADATA)
            }
        })*
    };
}

kinds! {
    Counter: describe_counter, register_counter;
    Gauge: describe_gauge, register_gauge;
    Histogram: describe_histogram, register_histogram;
}

/// Declares a struct of series with the same labels. The doc of a series is its help text. A metric that has one more label follows
/// with its help text, and has a series for each value of that label.
macro_rules! series {
    (
        $(#[$doc:meta])*
        $visible:vis struct $name:ident {
            $($(#[doc = $help:literal])+ $field_visible:vis $field:ident: $kind:ident = $metric:literal,)*
        }
        $($labelled_kind:ident $labelled:literal by $label:ident: $labelled_help:literal {
            $($(#[doc = $value_doc:literal])* $value_visible:vis $value_field:ident = $value:literal,)+
        })*
    ) => {
        $(#[$doc])*
        #[allow(clippy::doc_markdown, reason = "the help of a metric is plain text")]
        $visible struct $name {
            $($(#[doc = $help])+ $field_visible $field: $kind,)*
            $($($(#[doc = $value_doc])* $value_visible $value_field: $labelled_kind,)+)*
        }

        impl $name {
            pub(super) fn new(recorder: &Recorder, labels: $crate::metrics::recorder::Labels<'_>) -> Self {
                Self {
                    $($field: recorder.series($metric, concat!($($help),+), labels),)*
                    $($($value_field: {
                        let labels = [labels, &[(stringify!($label), $value)]].concat();
                        recorder.series($labelled, $labelled_help, &labels)
                    },)+)*
                }
            }
        }
    };
}

pub(super) use series;

/// Sets a gauge to a count.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, and no count here reaches that"
)]
pub fn set(gauge: &Gauge, count: u64) {
    gauge.set(count as f64);
}
