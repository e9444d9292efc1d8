//! A collector of spans that speaks OTLP over gRPC.

use std::{future::pending, sync::Mutex};

use hlorank_tests::prelude::*;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value},
    trace::v1::{ResourceSpans, Span},
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Response,
    transport::{Identity, Server, ServerTlsConfig},
};

use super::calls::program;

/// Collector on loopback. Dropping it closes its connections.
pub(crate) struct Collector {
    received: Arc<Mutex<Vec<ResourceSpans>>>,
    endpoint: String,
    runtime: Option<Runtime>,
}

/// Behaviour of a collector.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Accepts spans.
    Takes,
    /// Accepts connections and never answers.
    Freezes,
}

struct Receiver {
    received: Arc<Mutex<Vec<ResourceSpans>>>,
    manner: Manner,
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        match self.manner {
            Manner::Takes => self
                .received
                .lock()
                .unwrap()
                .extend(request.into_inner().resource_spans),
            Manner::Freezes => pending().await,
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Self {
        Self::serve(manner, Server::builder(), "http").await
    }

    /// Starts a collector that accepts spans over TLS.
    pub(crate) async fn start_secured(identity: Identity) -> Self {
        let server = Server::builder()
            .tls_config(ServerTlsConfig::new().identity(identity))
            .unwrap();
        Self::serve(Manner::Takes, server, "https").await
    }

    async fn serve(manner: Manner, mut server: Server, scheme: &str) -> Self {
        let received = Arc::default();
        let service = TraceServiceServer::new(Receiver {
            received: Arc::clone(&received),
            manner,
        });
        let runtime = Runtime::new().unwrap();
        let listening = runtime.spawn(TcpListener::bind("127.0.0.1:0"));
        let listener = listening.await.unwrap().unwrap();
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let serving = server.add_service(service);
        runtime.spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        Self {
            received,
            endpoint,
            runtime: Some(runtime),
        }
    }

    /// Returns a command that runs a server with these flags, which sends its spans here without delay.
    pub(crate) fn program(&self, flags: &[&str]) -> Command {
        let mut program = program(flags);
        program
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint)
            .env("OTEL_BSP_SCHEDULE_DELAY", "50");
        program
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Waits for this number of call spans, and returns all call spans received.
    pub(crate) async fn calls(&self, count: usize) -> Vec<Span> {
        let started = Instant::now();
        loop {
            let mut spans = self.spans();
            spans.retain(|span| span.name.contains('/'));
            if spans.len() >= count {
                return spans;
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{} spans: {spans:?}",
                spans.len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns all spans received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let scopes = received.iter().flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the resource attributes of the first span.
    pub(crate) fn sender(&self) -> HashMap<String, String> {
        let received = self.received.lock().unwrap();
        attributes(&received[0].resource.as_ref().unwrap().attributes)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

/// Returns attributes as text.
pub(crate) fn attributes(attributes: &[KeyValue]) -> HashMap<String, String> {
    let text = |value: &KeyValue| match value.value.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => text,
        any_value::Value::BoolValue(value) => value.to_string(),
        any_value::Value::IntValue(value) => value.to_string(),
        other => panic!("{other:?}"),
    };
    attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), text(attribute)))
        .collect()
}
