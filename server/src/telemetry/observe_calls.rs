//! A layer around the services that observes every call from its headers to the end of its answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};

use super::{
    call::{Call, Observer},
    request_id::RequestId,
};

/// Wraps services in [`ObserveCalls`].
#[derive(Clone)]
pub(crate) struct ObserveCallsLayer(pub(crate) Arc<Observer>);

/// Gives every call an id. Calls to our services also get a [`CallRecord`](super::CallRecord) among their extensions,
/// and are counted, logged and traced when they end, even if they are cancelled.
#[derive(Clone)]
pub(crate) struct ObserveCalls<S> {
    observer: Arc<Observer>,
    inner: S,
}

/// The body of an answer, whose trailers end the call.
pub(crate) struct ObservedBody<B> {
    inner: B,
    id: RequestId,
    /// `None` after the call has ended, and for a method that is not ours.
    call: Option<Call>,
}

impl<S> Layer<S> for ObserveCallsLayer {
    type Service = ObserveCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ObserveCalls {
            observer: Arc::clone(&self.0),
            inner,
        }
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
        let log_span = log_span(call.as_ref());
        let request = match &call {
            Some(call) => call.attach_record(request),
            None => request,
        };
        // A service may log while it creates its future, which `instrument` does not cover.
        let response = log_span.in_scope(|| self.inner.call(request));
        let observed = async move {
            let mut call = call;
            let mut response = response.await?;
            id.add_to_headers(response.headers_mut());
            // A call that failed before its first message has its status in the headers.
            end_by(response.headers_mut(), &id, &mut call);
            Ok(response.map(|inner| ObservedBody { inner, id, call }))
        };
        Box::pin(observed.instrument(log_span))
    }
}

fn log_span(call: Option<&Call>) -> Span {
    call.map_or_else(Span::none, Call::log_span)
}

/// Ends the call if these headers or trailers hold its status. Adds the id to a failure.
fn end_by(headers: &mut HeaderMap, id: &RequestId, call: &mut Option<Call>) {
    let Some(status) = Status::from_header_map(headers) else {
        return;
    };
    if status.code() != Code::Ok {
        id.add_to_status(&status, headers);
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
        let mut frame =
            ready!(log_span(call.as_ref()).in_scope(|| Pin::new(inner).poll_frame(context)));
        if let Some(Ok(frame)) = &mut frame {
            if let (Some(data), Some(call)) = (frame.data_ref(), call.as_mut()) {
                call.answered(data.len());
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
