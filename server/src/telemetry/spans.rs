//! The span of a call, and one below it for each of its stages.

use std::time::{Instant, SystemTime};

use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, TraceId, Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tonic::Code;

use super::{
    call_record::{Facts, Stage},
    observe_calls::Ended,
    trace_context::caller,
};
use crate::metrics::{Method, code_name};

/// The span of a call; costs little where it is not sampled.
pub(super) struct CallSpan(Span);

impl CallSpan {
    /// Begins a span, in the trace that the headers tell or in a new one.
    pub(super) fn start(tracer: &SdkTracer, method: &Method, headers: &HeaderMap) -> Self {
        let span =
            SpanBuilder::from_name(format!("{}/{}", method.service, method.name)).with_kind(SpanKind::Server);
        Self(tracer.build_with_context(span, &caller(headers).map_or_else(Context::new, within)))
    }

    pub(super) fn trace_id(&self) -> TraceId {
        self.0.span_context().trace_id()
    }

    /// Ends it, with the attributes of OpenTelemetry's conventions for gRPC and some of ours.
    pub(super) fn end(&mut self, tracer: &SdkTracer, call: &Ended<'_>, facts: &Facts) {
        if !self.0.is_recording() {
            return;
        }
        let (now, parent) = (Clock::now(), within(self.0.span_context().clone()));
        for Stage { name, started, ended } in &facts.stages {
            let stage = SpanBuilder::from_name(*name).with_start_time(now.at(*started));
            tracer.build_with_context(stage, &parent).end_with_timestamp(now.at(*ended));
        }
        self.0.set_attributes(of_call(call));
        self.0.set_attributes(of_work(facts));
        if is_our_fault(call.code) {
            self.0.set_status(Status::error(call.reason.unwrap_or(code_name(call.code)).to_owned()));
        }
        self.0.end();
    }
}

/// What the time of day was at an instant.
struct Clock(Instant, SystemTime);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "spans tell times of day")]
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    fn at(&self, instant: Instant) -> SystemTime {
        self.1 - self.0.saturating_duration_since(instant)
    }
}

fn within(span: SpanContext) -> Context {
    Context::new().with_remote_span_context(span)
}

fn of_call(call: &Ended<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("rpc.system", "grpc"),
        KeyValue::new("rpc.service", call.method.service.clone()),
        KeyValue::new("rpc.method", call.method.name.clone()),
        KeyValue::new("rpc.grpc.status_code", i64::from(i32::from(call.code))),
        KeyValue::new("hlorank.request_id", call.id.as_str().to_owned()),
    ];
    if let Some(peer) = call.peer {
        attributes.push(KeyValue::new("network.peer.address", peer.ip().to_string()));
        attributes.push(KeyValue::new("network.peer.port", i64::from(peer.port())));
    }
    attributes.extend(call.reason.map(|reason| KeyValue::new("hlorank.reason", reason.to_owned())));
    attributes
}

fn of_work(facts: &Facts) -> Vec<KeyValue> {
    let count = |name, count| KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX));
    let mut attributes = Vec::new();
    if let Some((name, version)) = &facts.model {
        attributes.push(KeyValue::new("hlorank.model", name.clone()));
        attributes.push(count("hlorank.version", *version));
    }
    if let Some(graph) = &facts.graph {
        attributes.push(KeyValue::new("hlorank.graph", graph.hash.to_string()));
        attributes.push(KeyValue::new("hlorank.cached", graph.cached));
        attributes.push(count("hlorank.nodes", graph.nodes as u64));
    }
    if facts.batches > 0 {
        attributes.push(count("hlorank.batches", facts.batches));
        attributes.push(count("hlorank.configs", facts.reuse.configs));
        attributes.push(count("hlorank.rows", facts.reuse.distinct_segment_rows));
        attributes.push(count("hlorank.evaluated", facts.reuse.rows_evaluated));
    }
    attributes
}

/// The codes for which OpenTelemetry's conventions call the span of a server an error.
fn is_our_fault(code: Code) -> bool {
    use Code::{DataLoss, DeadlineExceeded, Internal, Unavailable, Unimplemented, Unknown};
    matches!(code, Unknown | DeadlineExceeded | Unimplemented | Internal | Unavailable | DataLoss)
}
