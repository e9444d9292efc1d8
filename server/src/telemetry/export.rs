//! Sends spans to a collector, over OTLP.

use std::{
    mem::take,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry::{KeyValue, trace::TracerProvider as _};
pub use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{Sampler, SdkTracer, SdkTracerProvider, SpanData},
};
use tonic::transport::{Channel, Endpoint, Uri};
use uuid::Uuid;

/// Begins spans, and sends those that are sampled where there is a collector.
pub(crate) struct Tracing(SdkTracerProvider);

/// A collector, which may be away.
#[derive(Debug)]
struct Collector {
    address: Uri,
    exporter: SpanExporter,
    lost: Mutex<LostSpans>,
}

/// Spans that were not taken.
#[derive(Debug, Default)]
struct LostSpans {
    /// Since it was told.
    spans: usize,
    told: Option<Instant>,
}

/// The name of the service, and of the library that makes its spans.
const SERVICE: &str = "hlorank-server";

/// How long a collector may take to accept a connection, and to take a batch.
const CONNECTING: Duration = Duration::from_secs(3);
const SENDING: Duration = Duration::from_secs(5);

/// For the last spans, where calls took the whole drain time.
const FLUSHING_AT_LEAST: Duration = Duration::from_millis(500);

/// How often a collector must show that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How often it is told that spans are lost.
const LOST_SPANS_EVERY: Duration = Duration::from_mins(1);

impl Tracing {
    /// Sends this part (from 0 to 1) of the traces that begin here to a collector, and of others those that are
    /// sampled where they began. Without a collector calls have traces, too, for the log.
    pub(crate) fn start(collector: Option<Uri>, ratio: f64) -> Result<Self, ExporterBuildError> {
        let Some(collector) = collector else {
            return Ok(Self(SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff).build()));
        };
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio)));
        let provider = SdkTracerProvider::builder().with_sampler(sampler).with_resource(resource());
        Ok(Self(provider.with_batch_exporter(Collector::new(collector)?).build()))
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.0.tracer(SERVICE)
    }

    /// Sends what was not sent yet, unless that takes longer than `rest`, or than any collector should.
    pub(crate) async fn stop(self, rest: Duration) {
        let longest = rest.clamp(FLUSHING_AT_LEAST, SENDING);
        let flushed = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(longest));
        if let Ok(Err(error @ OTelSdkError::Timeout(_))) = flushed.await {
            tracing::warn!(%error, "the last spans were lost: the collector does not take them");
        }
    }
}

/// What makes the spans. `OTEL_RESOURCE_ATTRIBUTES` may say more.
fn resource() -> Resource {
    let attributes = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
    ];
    Resource::builder().with_service_name(SERVICE).with_attributes(attributes).build()
}

impl Collector {
    fn new(address: Uri) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_channel(channel(address.clone()))
            // The next batch tries again.
            .with_retry_policy(RetryPolicy::disabled());
        Ok(Self { address, exporter: exporter.build()?, lost: Mutex::default() })
    }

    fn lost(&self, spans: usize, error: &OTelSdkError) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.spans += spans;
        if lost.told.is_some_and(|told| told.elapsed() < LOST_SPANS_EVERY) {
            return;
        }
        lost.told = Some(Instant::now());
        let spans = take(&mut lost.spans);
        tracing::warn!(spans, collector = %self.address, %error, "spans were lost: the collector does not take them");
    }
}

/// Connects when there is something to send.
fn channel(address: Uri) -> Channel {
    Endpoint::from(address)
        .connect_timeout(CONNECTING)
        .timeout(SENDING)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .connect_lazy()
}

impl opentelemetry_sdk::trace::SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        if let Err(error) = self.exporter.export(batch).await {
            self.lost(spans, &error);
        }
        // It has been told: nothing else is to report it.
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
