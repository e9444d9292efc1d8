use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use opentelemetry_sdk::trace::SdkTracer;
use tonic::{Code, Status, transport::server::TcpConnectInfo};
use tonic_types::StatusExt as _;
use tracing::Span;

use super::{
    access_log::AccessLog, call_record::CallRecord, ended_call::EndedCall, logging::CALL_TARGET,
    request_id::RequestId, spans::CallSpan,
};
use crate::metrics::{Method, Metrics};

/// Receives what is observed of calls.
pub(crate) struct Observer {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: AccessLog,
    pub(crate) tracer: SdkTracer,
}

/// A call in progress. Dropping it before [`Call::end`] reports the call as cancelled.
pub(super) struct Call {
    observer: Arc<Observer>,
    method: Arc<Method>,
    record: CallRecord,
    id: RequestId,
    log_span: Span,
    span: CallSpan,
    server: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    started: Instant,
    answer_bytes: u64,
    ended: bool,
}

impl Call {
    pub(super) fn new(
        observer: &Arc<Observer>,
        method: Arc<Method>,
        id: &RequestId,
        request: &Request,
    ) -> Self {
        let span = CallSpan::start(&observer.tracer, &method, request.headers());
        let connection = request.extensions().get::<TcpConnectInfo>();
        Self {
            observer: Arc::clone(observer),
            record: CallRecord::default(),
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

    /// Returns the span of the log lines of this call.
    pub(super) fn log_span(&self) -> Span {
        self.log_span.clone()
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

    /// Counts bytes of the answer.
    pub(super) fn answered(&mut self, bytes: usize) {
        self.answer_bytes += bytes as u64;
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
        let Observer {
            metrics,
            access_log,
            tracer,
        } = self.observer.as_ref();
        let series = call.method.series(facts.series.as_deref());
        metrics
            .methods
            .ended(series, call.code, call.reason, call.duration);
        self.log_span.in_scope(|| access_log.log(&call, &facts));
        self.span.end(tracer, &call, &facts);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // The client has gone, and nothing polls the call.
        if !self.ended {
            self.report(&Status::cancelled(""));
        }
    }
}
