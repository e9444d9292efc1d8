//! The span of a call, with a child span for each of its stages.

use std::{
    net::SocketAddr,
    time::{Instant, SystemTime},
};

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, TraceId, Tracer as _},
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{SdkTracer, Span},
};
use tonic::Code;

use super::call_record::{CallStage, EndedCall, Facts};
use crate::metrics::{Method, code_name};

/// The span of a call, which costs little if it is not sampled.
pub(super) struct CallSpan(Span);

impl CallSpan {
    /// Starts a span in the trace of the caller's headers, or in a new trace.
    pub(super) fn start(tracer: &SdkTracer, method: &Method, headers: &HeaderMap) -> Self {
        let span = SpanBuilder::from_name(full_name(method)).with_kind(SpanKind::Server);
        // A malformed trace context begins a new trace.
        let headers = TraceHeaders(headers);
        let caller = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
        Self(tracer.build_with_context(span, &caller))
    }

    pub(super) fn trace_id(&self) -> TraceId {
        self.0.span_context().trace_id()
    }

    /// Ends the span, with the attributes of OpenTelemetry's stable conventions for gRPC and some of our own.
    pub(super) fn end(&mut self, tracer: &SdkTracer, call: &EndedCall<'_>, facts: &Facts) {
        // Most spans are not sampled, and attributes allocate.
        if !self.0.is_recording() {
            return;
        }
        // Stages have instants, and spans have wall-clock times: one reading of both clocks
        // converts all, so that a jump of the wall clock cannot reorder the stages.
        let now = Clock::now();
        let parent = Context::new().with_remote_span_context(self.0.span_context().clone());
        for CallStage {
            name,
            started,
            ended,
        } in &facts.stages
        {
            let stage = SpanBuilder::from_name(*name).with_start_time(now.at(*started));
            tracer
                .build_with_context(stage, &parent)
                .end_with_timestamp(now.at(*ended));
        }
        self.0.set_attributes(call_attributes(call));
        self.0.set_attributes(work_attributes(facts));
        if is_server_error(call.code) {
            self.0.set_status(Status::error(
                call.reason.unwrap_or(code_name(call.code)).to_owned(),
            ));
        }
        self.0.end();
    }
}

/// Converts instants to wall-clock time.
struct Clock(Instant, SystemTime);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "spans hold wall-clock times")]
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    fn at(&self, instant: Instant) -> SystemTime {
        self.1 - self.0.saturating_duration_since(instant)
    }
}

/// Minimum length of a `traceparent`: a version, a trace id, a span id and flags, of 2, 32, 16 and 2 digits.
const TRACEPARENT_BYTES: usize = 55;

/// Headers that may have a [trace context](https://www.w3.org/TR/trace-context/).
struct TraceHeaders<'a>(&'a HeaderMap);

impl Extractor for TraceHeaders<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?.to_str().ok()?;
        // The propagator takes ids and flags of any length.
        (name != "traceparent" || value.len() >= TRACEPARENT_BYTES).then_some(value)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

fn full_name(method: &Method) -> String {
    format!("{}/{}", method.service, method.name)
}

fn call_attributes(call: &EndedCall<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("rpc.system.name", "grpc"),
        KeyValue::new("rpc.method", full_name(call.method)),
        KeyValue::new("rpc.response.status_code", code_name(call.code)),
        KeyValue::new("hlorank.request_id", call.id.as_str().to_owned()),
    ];
    if is_server_error(call.code) {
        attributes.push(KeyValue::new("error.type", code_name(call.code)));
    }
    let server = ["server.address", "server.port"];
    attributes.extend(call.server.into_iter().flat_map(|of| socket(server, of)));
    let peer = ["network.peer.address", "network.peer.port"];
    attributes.extend(call.peer.into_iter().flat_map(|of| socket(peer, of)));
    let reason = call.reason.map(str::to_owned);
    attributes.extend(reason.map(|reason| KeyValue::new("hlorank.reason", reason)));
    attributes
}

fn socket([address, port]: [&'static str; 2], of: SocketAddr) -> [KeyValue; 2] {
    [
        KeyValue::new(address, of.ip().to_string()),
        KeyValue::new(port, i64::from(of.port())),
    ]
}

fn work_attributes(facts: &Facts) -> Vec<KeyValue> {
    let mut attributes = Vec::new();
    if let Some((name, version)) = &facts.model {
        attributes.push(KeyValue::new("hlorank.model", name.clone()));
        attributes.push(number("hlorank.version", *version));
    }
    if let Some(graph) = &facts.graph {
        attributes.push(KeyValue::new("hlorank.graph", graph.hash.to_string()));
        attributes.push(KeyValue::new("hlorank.cached", graph.cached));
        attributes.push(count("hlorank.nodes", graph.nodes));
    }
    if facts.batches > 0 {
        let reuse = &facts.reuse;
        attributes.push(number("hlorank.batches", facts.batches));
        attributes.push(count("hlorank.configs", reuse.configs));
        attributes.push(count("hlorank.rows", reuse.distinct_segment_rows));
        attributes.push(count("hlorank.evaluated", reuse.rows_evaluated));
    }
    attributes
}

/// Returns an attribute. Those of OpenTelemetry have signed numbers alone.
fn number(name: &'static str, number: u64) -> KeyValue {
    KeyValue::new(name, i64::try_from(number).unwrap_or(i64::MAX))
}

fn count(name: &'static str, count: usize) -> KeyValue {
    number(name, count as u64)
}

/// Returns whether OpenTelemetry's conventions count a code as an error of the server.
fn is_server_error(code: Code) -> bool {
    use Code::{DataLoss, DeadlineExceeded, Internal, Unavailable, Unimplemented, Unknown};
    matches!(
        code,
        Unknown | DeadlineExceeded | Unimplemented | Internal | Unavailable | DataLoss
    )
}
