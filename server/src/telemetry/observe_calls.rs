//! A layer around the services that sees every call begin and end.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use opentelemetry_sdk::trace::SdkTracer;
use tonic::{Code, Status, transport::server::TcpConnectInfo};
use tonic_types::StatusExt as _;
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};

use super::{CallRecord, access_log::AccessLog, logging::CALL, request_id::RequestId, spans::CallSpan};
use crate::metrics::{Method, Metrics};

/// Wraps services in [`ObserveCalls`].
#[derive(Clone)]
pub(crate) struct ObserveCallsLayer(pub(crate) Arc<Observer>);

/// Gives every call an id. Those of our services find a [`CallRecord`] among their extensions, and are counted, logged
/// and traced once they have ended, however they end.
#[derive(Clone)]
pub(crate) struct ObserveCalls<S> {
    observer: Arc<Observer>,
    inner: S,
}

/// Where what is seen goes.
pub(crate) struct Observer {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: AccessLog,
    pub(crate) tracer: SdkTracer,
}

/// An answer that tells how its call ended.
pub(crate) struct ObservedBody<B> {
    inner: B,
    id: RequestId,
    /// Until it has told.
    call: Option<Call>,
}

/// A call in progress; one that is dropped was cancelled.
struct Call {
    observer: Arc<Observer>,
    method: Arc<Method>,
    record: CallRecord,
    id: RequestId,
    /// Of the log.
    lines: Span,
    span: CallSpan,
    peer: Option<SocketAddr>,
    started: Instant,
    answer_bytes: u64,
    ended: bool,
}

/// How a call of ours ended.
pub(super) struct Ended<'a> {
    pub(super) method: &'a Method,
    pub(super) code: Code,
    /// Of a failure.
    pub(super) reason: Option<&'a str>,
    pub(super) took: Duration,
    pub(super) id: &'a RequestId,
    pub(super) peer: Option<SocketAddr>,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
}

impl<S> Layer<S> for ObserveCallsLayer {
    type Service = ObserveCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ObserveCalls { observer: Arc::clone(&self.0), inner }
    }
}

impl<S, Outgoing> Service<Request<tonic::body::Body>> for ObserveCalls<S>
where
    S: Service<Request<tonic::body::Body>, Response = Response<Outgoing>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<ObservedBody<Outgoing>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let id = RequestId::of(request.headers());
        let method = self.observer.metrics.methods.get(request.uri().path());
        let call = method.map(|method| Call::new(&self.observer, method, &id, &request));
        let lines = call.as_ref().map_or_else(Span::none, |call| call.lines.clone());
        let request = match &call {
            Some(call) => call.recorded(request),
            None => request,
        };
        let response = lines.in_scope(|| self.inner.call(request));
        let observed = async move {
            let mut call = call;
            let mut response = response.await?;
            id.tell(response.headers_mut());
            // A call that was refused, or failed before its first answer, has its status in the headers.
            end_by(response.headers_mut(), &id, &mut call);
            Ok(response.map(|inner| ObservedBody { inner, id, call }))
        };
        Box::pin(observed.instrument(lines))
    }
}

/// Ends a call if these are the headers or trailers that tell how it ended.
fn end_by(headers: &mut HeaderMap, id: &RequestId, call: &mut Option<Call>) {
    let Some(status) = Status::from_header_map(headers) else { return };
    if status.code() != Code::Ok {
        id.explain(&status, headers);
    }
    if let Some(call) = call.take() {
        call.end(&status);
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ObservedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Self { inner, id, call } = &mut *self;
        let lines = call.as_ref().map_or_else(Span::none, |call| call.lines.clone());
        let mut frame = ready!(lines.in_scope(|| Pin::new(inner).poll_frame(context)));
        if let Some(Ok(frame)) = &mut frame {
            if let (Some(data), Some(call)) = (frame.data_ref(), call.as_mut()) {
                call.answer_bytes += data.len() as u64;
            }
            if let Some(trailers) = frame.trailers_mut() {
                end_by(trailers, id, call);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Call {
    fn new<B>(observer: &Arc<Observer>, method: Arc<Method>, id: &RequestId, request: &Request<B>) -> Self {
        let span = CallSpan::start(&observer.tracer, &method, request.headers());
        let connection = request.extensions().get::<TcpConnectInfo>();
        Self {
            observer: Arc::clone(observer),
            record: CallRecord::default(),
            id: id.clone(),
            lines: tracing::error_span!(target: CALL, parent: None, CALL, request_id = id.as_str(), trace_id = %span.trace_id()),
            span,
            peer: connection.and_then(TcpConnectInfo::remote_addr),
            started: Instant::now(),
            answer_bytes: 0,
            ended: false,
            method,
        }
    }

    /// The request, from which the record learns.
    fn recorded(&self, mut request: Request<tonic::body::Body>) -> Request<tonic::body::Body> {
        request.extensions_mut().insert(self.record.clone());
        let record = self.record.clone();
        let count = move |frame: &Frame<Bytes>| {
            if let Some(data) = frame.data_ref() {
                record.received(data.len() as u64);
            }
        };
        request.map(|body| tonic::body::Body::new(body.inspect_frame(count)))
    }

    fn end(mut self, status: &Status) {
        self.ended = true;
        self.tell(status);
    }

    fn tell(&mut self, status: &Status) {
        let info = (status.code() != Code::Ok).then(|| status.get_details_error_info()).flatten();
        let ended = Ended {
            method: &self.method,
            code: status.code(),
            reason: info.as_ref().map(|info| info.reason.as_str()),
            took: self.started.elapsed(),
            id: &self.id,
            peer: self.peer,
            request_bytes: self.record.request_bytes(),
            answer_bytes: self.answer_bytes,
        };
        let facts = self.record.facts();
        let Observer { metrics, access_log, tracer } = self.observer.as_ref();
        metrics.methods.ended(ended.method, facts.series.as_deref(), ended.code, ended.reason, ended.took);
        self.lines.in_scope(|| access_log.log(&ended, &facts));
        self.span.end(tracer, &ended, &facts);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(&Status::cancelled(""));
        }
    }
}
