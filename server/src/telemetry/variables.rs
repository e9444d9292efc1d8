//! The variables of OpenTelemetry that set where spans go, and how many.

use std::{env, ffi::OsString};

use http::Uri;

/// OpenTelemetry's variables that the server or OpenTelemetry's library reads for spans.
const READ: [&str; 16] = [
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
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
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

/// Returns the value of the first of OpenTelemetry's variables that is set and not empty.
pub(super) fn variable(names: &[&str]) -> Option<OsString> {
    let mut values = names.iter().filter_map(env::var_os);
    values.find(|value| !value.is_empty())
}

/// Reads the address of a collector; `None` if it is none.
pub(super) fn collector_address(text: &str) -> Option<Uri> {
    let uri = text.parse::<Uri>().ok()?;
    // OTLP over gRPC has a path of its own, so a URL with another one is that of a collector over HTTP.
    let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
    (has_scheme && uri.path() == "/" && uri.query().is_none()).then_some(uri)
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
        let unread = ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_EXPORTER"];
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
    fn a_collector_has_an_address_with_or_without_tls() {
        for url in [
            "http://collector.example:4317",
            "https://collector.example:4317/",
        ] {
            let found = collector_address(url).unwrap();
            assert_eq!(
                found.authority().unwrap().as_str(),
                "collector.example:4317"
            );
        }
        for wrong in [
            "",
            "off",
            "collector:4317",
            "grpc://collector:4317",
            "http://collector:4318/v1/traces",
        ] {
            assert_eq!(collector_address(wrong), None, "{wrong}");
        }
    }
}
