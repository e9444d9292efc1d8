//! Sends spans to a collector over OTLP.

use std::{
    env,
    error::Error as _,
    mem::take,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use opentelemetry::{InstrumentationScope, KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{Sampler, SdkTracer, SdkTracerProvider, SpanData},
};
use parking_lot::Mutex;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Uri};
use uuid::Uuid;

use super::variables::{collector_address, variable};
use crate::pem_files::{PemContent, check_pem, read_file};

/// Creates spans, and sends the sampled ones if a collector is configured.
pub(crate) struct Tracing(SdkTracerProvider);

/// Why spans cannot be sent: the authorities, TLS or the exporter cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SpansError(String);

/// Sends spans to a collector, which may be unreachable.
#[derive(Debug)]
struct CollectorExporter {
    address: Uri,
    exporter: SpanExporter,
    lost: Mutex<LostSpans>,
}

/// Spans that the collector did not accept.
#[derive(Debug, Default)]
struct LostSpans {
    /// Spans lost since the last report.
    spans: usize,
    reported: Option<Instant>,
}

/// OpenTelemetry's variables that name the collector.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// OpenTelemetry's variables that name a file with the authorities of the collector.
const AUTHORITIES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];

/// Name of the service, and of the instrumentation library.
const SERVICE: &str = "hlorank-server";

/// Version of OpenTelemetry's conventions that attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.45.0";

/// Timeout for a connection to the collector.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// OpenTelemetry's variables that set [`SEND_TIMEOUT`], in milliseconds.
const SEND_TIMEOUTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];

/// Timeout for sending one batch by default.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time for the last spans, for when calls used up the drain time.
const MIN_FLUSH_TIME: Duration = Duration::from_millis(500);

/// Interval and timeout of keep-alive pings to the collector.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Minimum interval between log lines about lost spans.
const LOST_SPANS_INTERVAL: Duration = Duration::from_mins(1);

impl Tracing {
    /// Sends the traces that OpenTelemetry's sampler chooses to the collector that its variables name. Without a collector, calls
    /// still have trace ids for the log.
    pub(crate) fn start() -> Result<Self, SpansError> {
        let builder = SdkTracerProvider::builder();
        let Some(address) = collector()? else {
            return Ok(Self(builder.with_sampler(Sampler::AlwaysOff).build()));
        };
        let authorities = variable(&AUTHORITIES).map(PathBuf::from);
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_channel(channel(address.clone(), authorities.as_deref())?)
            // A failed batch is lost; the next batch is a new attempt.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| SpansError(error.to_string()))?;
        let builder = builder
            .with_resource(resource())
            .with_batch_exporter(CollectorExporter {
                address,
                exporter,
                lost: Mutex::default(),
            });
        Ok(Self(builder.build()))
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        let scope = InstrumentationScope::builder(SERVICE)
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(SCHEMA);
        self.0.tracer_with_scope(scope.build())
    }

    /// Sends the remaining spans, within `remaining` or the time that a collector may take, whichever is shorter.
    pub(crate) async fn stop(self, remaining: Duration) {
        let timeout = remaining.clamp(MIN_FLUSH_TIME, SEND_TIMEOUT);
        // The SDK blocks the thread while it flushes.
        let flushed = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(timeout));
        if let Ok(Err(error @ OTelSdkError::Timeout(_))) = flushed.await {
            tracing::warn!(%error, "the last spans were lost: the collector does not accept them");
        }
    }
}

/// Returns the address of the collector; `None` if no variable names one.
fn collector() -> Result<Option<Uri>, SpansError> {
    let Some(value) = variable(&ENDPOINTS) else {
        return Ok(None);
    };
    let address = value.to_str().and_then(collector_address);
    address.map(Some).ok_or_else(|| {
        let [first, second] = ENDPOINTS;
        SpansError(format!(
            "`{}` in {first} or {second} is no address of a collector, expected http:// or https://, a host and a port without a \
             path, such as http://127.0.0.1:4317",
            value.display()
        ))
    })
}

/// Returns the attributes of this server. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` may add more and replace these.
fn resource() -> Resource {
    let attributes = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
    ];
    let name = env::var("OTEL_SERVICE_NAME").ok();
    let name = name.filter(|name| !name.is_empty());
    Resource::builder_empty()
        .with_service_name(SERVICE)
        .with_attributes(attributes)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(name.map(|name| KeyValue::new("service.name", name)))
        .build()
}

impl CollectorExporter {
    /// Counts lost spans, and logs them at most once per [`LOST_SPANS_INTERVAL`].
    fn lost(&self, spans: usize, error: &OTelSdkError) {
        let mut lost = self.lost.lock();
        lost.spans += spans;
        if lost
            .reported
            .is_some_and(|reported| reported.elapsed() < LOST_SPANS_INTERVAL)
        {
            return;
        }
        lost.reported = Some(Instant::now());
        let spans = take(&mut lost.spans);
        tracing::warn!(spans, collector = %self.address, %error, "spans were lost: the collector does not accept them");
    }
}

/// Returns a channel that connects when the first batch is sent: over TLS if the address is https://, to a collector
/// whose certificate an authority of the file has signed, or one of the system's.
fn channel(address: Uri, authorities: Option<&Path>) -> Result<Channel, SpansError> {
    let is_secure = address.scheme_str() == Some("https");
    let endpoint = Endpoint::from(address)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(send_timeout()?)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    if !is_secure {
        return Ok(endpoint.connect_lazy());
    }
    let tls = ClientTlsConfig::new().timeout(CONNECT_TIMEOUT);
    let tls = match authorities {
        Some(path) => tls.ca_certificate(read_authorities(path)?),
        None => tls.with_native_roots(),
    };
    let endpoint = endpoint.tls_config(tls).map_err(|error| {
        // The error itself is only the kind of error. Its cause is above all that the system has no authorities.
        let cause = error
            .source()
            .map_or(error.to_string(), ToString::to_string);
        SpansError(format!(
            "TLS cannot be set up: {cause}; {} can name a file with the authorities to trust",
            AUTHORITIES[1]
        ))
    })?;
    Ok(endpoint.connect_lazy())
}

fn send_timeout() -> Result<Duration, SpansError> {
    let Some(value) = variable(&SEND_TIMEOUTS) else {
        return Ok(SEND_TIMEOUT);
    };
    let number = value.to_str().and_then(|value| value.parse().ok());
    let number = number.map(Duration::from_millis);
    number.ok_or_else(|| {
        let [first, second] = SEND_TIMEOUTS;
        let value = value.display();
        SpansError(format!(
            "`{value}` in {first} or {second} is no number of milliseconds"
        ))
    })
}

/// Reads a file of certificates. TLS itself accepts a file without any, and then trusts nobody.
fn read_authorities(path: &Path) -> Result<Certificate, SpansError> {
    let pem = read_file(path).and_then(|pem| {
        check_pem(path, PemContent::Certificate, &pem)?;
        Ok(Certificate::from_pem(pem))
    });
    pem.map_err(|detail| SpansError(format!("{detail}; {} names the file", AUTHORITIES[1])))
}

impl opentelemetry_sdk::trace::SpanExporter for CollectorExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        if let Err(error) = self.exporter.export(batch).await {
            self.lost(spans, &error);
        }
        // The loss is reported already; an error would make the SDK log it again.
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
