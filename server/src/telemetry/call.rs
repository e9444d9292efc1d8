use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use opentelemetry_sdk::trace::SdkTracer;
use tonic::{Code, Status, transport::server::TcpConnectInfo};
use tonic_types::StatusExt as _;
use tracing::{Span, field};

use super::{
    call_record::{CallRecord, EndedCall, Facts},
    logging::CALL_TARGET,
    request_id::RequestId,
    spans::CallSpan,
};
use crate::{
    caller::Caller,
    metrics::{Method, Metrics, code_name},
};

/// Receives what is observed of calls.
pub(crate) struct Observer {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tracer: SdkTracer,
}

/// A call in progress. Dropping it before [`Call::end`] reports the call as cancelled.
pub(super) struct ObservedCall {
    observer: Arc<Observer>,
    method: Arc<Method>,
    record: CallRecord,
    id: RequestId,
    /// The span of its log lines.
    pub(super) log_span: Span,
    span: CallSpan,
    server: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    started: Instant,
    /// Bytes of the answer so far.
    pub(super) answer_bytes: u64,
    ended: bool,
}

impl ObservedCall {
    pub(super) fn new(
        observer: &Arc<Observer>,
        method: Arc<Method>,
        id: &RequestId,
        request: &Request,
    ) -> Self {
        let span = CallSpan::start(&observer.tracer, &method, request.headers());
        let connection = request.extensions().get::<TcpConnectInfo>();
        let record = CallRecord::default();
        record.facts().method = method.name;
        Self {
            observer: Arc::clone(observer),
            record,
            id: id.clone(),
            // The span has the highest level, so that no filter that prints a line leaves out the
            // ids of its call.
            log_span: tracing::error_span!(target: CALL_TARGET, parent: None, "call", request_id = id.as_str(), trace_id = %span.trace_id()),
            span,
            server: connection.and_then(TcpConnectInfo::local_addr),
            peer: connection.and_then(TcpConnectInfo::remote_addr),
            started: Instant::now(),
            answer_bytes: 0,
            ended: false,
            method,
        }
    }

    /// Adds the call's record to a request, and counts the bytes of its body.
    pub(super) fn attach_record(&self, mut request: Request) -> Request {
        request.extensions_mut().insert(self.record.clone());
        let record = self.record.clone();
        let count = move |frame: &Frame<Bytes>| {
            if let Some(data) = frame.data_ref() {
                record.received(data.len() as u64);
            }
        };
        request.map(|body| Body::new(body.inspect_frame(count)))
    }

    pub(super) fn end(mut self, status: &Status) {
        self.ended = true;
        self.report(status);
    }

    /// Counts, logs and traces the call.
    fn report(&mut self, status: &Status) {
        // The details of a status are decoded only for a failed call, which has some.
        let info = (status.code() != Code::Ok)
            .then(|| status.get_details_error_info())
            .flatten();
        let call = EndedCall {
            method: &self.method,
            code: status.code(),
            reason: info.as_ref().map(|info| info.reason.as_str()),
            duration: self.started.elapsed(),
            id: &self.id,
            server: self.server,
            peer: self.peer,
            request_bytes: self.record.request_bytes(),
            answer_bytes: self.answer_bytes,
        };
        let facts = self.record.facts();
        let Observer { metrics, tracer } = self.observer.as_ref();
        let selected = facts.series.as_deref();
        let of_model = selected.and_then(|model| model.calls.get(call.method.name));
        let series = call.method.series(of_model);
        metrics
            .methods
            .ended(series, call.code, call.reason, call.duration);
        self.log_span.in_scope(|| log(&call, &facts));
        if (call.method.changes || facts.change.is_some()) && !facts.is_detached {
            let outcome = (call.code, call.reason);
            self.log_span.in_scope(|| facts.audit(outcome));
        }
        self.span.end(tracer, &call, &facts);
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        // The client has gone, and nothing polls the call.
        if !self.ended {
            self.report(&Status::cancelled(""));
        }
    }
}

/// Logs one line about a call.
fn log(call: &EndedCall<'_>, facts: &Facts) {
    let model = facts.model.as_ref();
    let graph = facts.graph;
    // A call without a batch has no counts, and fields without a value are left out of the
    // line.
    let scored = (facts.batches > 0).then_some(facts.reuse);
    tracing::info!(
        target: "access",
        method = call.method.name,
        code = code_name(call.code),
        reason = call.reason,
        seconds = call.duration.as_secs_f64(),
        request_bytes = call.request_bytes,
        answer_bytes = call.answer_bytes,
        model = model.map(|(name, _)| name.as_str()),
        version = model.map(|(_, version)| *version),
        graph = graph.map(|graph| field::display(graph.hash)),
        nodes = graph.map(|graph| graph.nodes),
        cached = graph.map(|graph| graph.cached),
        batches = scored.map(|_| facts.batches),
        configs = scored.map(|scored| scored.configs),
        distinct_configs = scored.map(|scored| scored.distinct_configs),
        rows = scored.map(|scored| scored.distinct_segment_rows),
        evaluated = scored.map(|scored| scored.rows_evaluated),
        client = facts.client.as_ref().map(Caller::name),
        peer = call.peer.map(field::display),
        "call ended"
    );
}
