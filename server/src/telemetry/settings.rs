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
    /// value of `OTEL_EXPORTER_OTLP_ENDPOINT`, if that is set. `OTEL_EXPORTER_OTLP_CERTIFICATE` names a PEM file of authorities,
    /// one of which must have signed the certificate of a collector at https://; otherwise those of the system are trusted.
    #[arg(long, value_name = "URL", default_value = ENDPOINT.as_str())]
    pub otlp_endpoint: OrOff<Collector>,

    /// Fraction of the new traces that are sent, 0 to 1
    ///
    /// It applies to traces that begin at this server; for other traces the client decides.
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = ratio)]
    pub trace_sample_ratio: f64,
}

/// The default, which is that of OpenTelemetry's own variable. A value that is not UTF-8 is kept as one that cannot be used, so
/// that the server does not start without it.
static ENDPOINT: LazyLock<String> = LazyLock::new(|| {
    let value = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    value.map_or_else(
        || "off".to_owned(),
        |value| value.to_string_lossy().into_owned(),
    )
});

/// Returns the value of one of OpenTelemetry's variables, if it is set and not empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
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
