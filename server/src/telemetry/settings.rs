use std::{env, ffi::OsString, str::FromStr, sync::LazyLock};

use clap::Args;
use http::Uri;

use crate::or_off::OrOff;

/// Settings of traces.
#[derive(Clone, Debug, Args)]
pub struct TraceSettings {
    /// Collector that receives the spans of calls
    ///
    /// It speaks OTLP/gRPC, such as `http://127.0.0.1:4317`, or https:// for TLS; `off` sends none. The default is the
    /// value of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`, if one is set.
    /// `OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE` or `OTEL_EXPORTER_OTLP_CERTIFICATE` names a PEM file of authorities, one of which must have signed the certificate of a collector at https://; otherwise those of the system are trusted.
    #[arg(long, value_name = "URL", default_value = ENDPOINT.as_str())]
    pub otlp_endpoint: OrOff<Collector>,

    /// Fraction of the new traces that are sent, 0 to 1
    ///
    /// It applies to traces that begin at this server; for other traces the client decides.
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = ratio)]
    pub trace_sample_ratio: f64,
}

/// OpenTelemetry's variables that the server or OpenTelemetry's library reads for spans.
const READ: [&str; 14] = [
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
];

/// Returns a sentence for each of OpenTelemetry's variables that is set and that nothing reads.
pub fn unread_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let mut unread: Vec<String> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| {
            let is_protocol = name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("PROTOCOL");
            let is_followed = is_protocol && value == "grpc";
            name.starts_with("OTEL_")
                && !value.is_empty()
                && !is_followed
                && !READ.contains(&name.as_str())
        })
        .map(|(name, _)| {
            format!(
                "the environment variable {name} is ignored, because the server does not read it; docs/logs-and-traces.md lists those of \
                 OpenTelemetry that it reads"
            )
        })
        .collect();
    unread.sort_unstable();
    unread
}

/// The default, which is that of OpenTelemetry's own variables. A value that is not UTF-8 is kept as one that cannot be used, so
/// that the server does not start without it.
static ENDPOINT: LazyLock<String> = LazyLock::new(|| {
    let value = variable(&[
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ]);
    value.map_or_else(
        || "off".to_owned(),
        |value| value.to_string_lossy().into_owned(),
    )
});

/// Returns the value of the first of OpenTelemetry's variables that is set and not empty.
pub(super) fn variable(names: &[&str]) -> Option<OsString> {
    let mut values = names.iter().filter_map(env::var_os);
    values.find(|value| !value.is_empty())
}

/// Reads a fraction, from 0 to 1.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text
        .parse()
        .ok()
        .filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected a number from 0 to 1, such as 0.01".to_owned())
}

/// URL of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(pub Uri);

impl FromStr for Collector {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let uri = text.parse::<Uri>().ok();
        // OTLP over gRPC has a path of its own, so a URL with another one is that of a collector
        // over HTTP.
        let is_address = |uri: &Uri| {
            let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
            has_scheme && uri.path() == "/" && uri.query().is_none()
        };
        uri.filter(is_address).map(Self).ok_or(
            "expected http:// or https://, a host and a port without a path, such as http://127.0.0.1:4317",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_variables_of_opentelemetry_that_are_read() {
        let page = include_str!("../../../docs/logs-and-traces.md");
        for name in READ {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_variable_of_opentelemetry_that_nothing_reads_is_named() {
        let set = |name: &str, value: &str| (name.into(), value.into());
        let read = [
            set("OTEL_SERVICE_NAME", "ranker"),
            set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            set("OTEL_SDK_DISABLED", ""),
            set("PATH", "/bin"),
        ];
        assert_eq!(unread_variables(read.into_iter()), [""; 0]);
        let unread = ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER"];
        let sentences = unread_variables(unread.map(|name| set(name, "http/json")).into_iter());
        assert_eq!(sentences.len(), 2);
        for (sentence, name) in sentences.iter().zip(unread) {
            assert!(
                sentence.contains(&format!("{name} is ignored")),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_collector_has_an_address_with_or_without_tls_or_is_off() {
        let collector = |url: &str| url.parse::<OrOff<Collector>>();
        for url in [
            "http://collector.example:4317",
            "https://collector.example:4317/",
        ] {
            let Collector(found) = collector(url).unwrap().0.unwrap();
            assert_eq!(
                found.authority().unwrap().as_str(),
                "collector.example:4317"
            );
        }
        assert_eq!(collector("off").unwrap(), OrOff(None));
        for wrong in [
            "",
            "collector:4317",
            "grpc://collector:4317",
            "http://collector:4318/v1/traces",
        ] {
            let refused = collector(wrong).unwrap_err();
            assert!(
                refused.ends_with("127.0.0.1:4317; `off` disables it"),
                "{wrong}"
            );
        }
    }
}
