//! Observes every call from its headers to the end of its answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tonic::{Code, Status};
use tracing::{Instrument as _, Span};

use super::{
    call::{ObservedCall, Observer},
    request_id::RequestId,
};

/// Gives a call an id. Calls to our services also get a [`CallRecord`](super::CallRecord) among their extensions, and are
/// counted, logged and traced when they end, even if they are cancelled.
pub(crate) async fn observe(
    State(observer): State<Arc<Observer>>,
    request: Request,
    next: Next,
) -> Response {
    let id = RequestId::from_headers(request.headers());
    let method = observer.metrics.methods.get(request.uri().path());
    let mut call = method.map(|method| ObservedCall::new(&observer, method, &id, &request));
    let request = match &call {
        Some(call) => call.attach_record(request),
        None => request,
    };
    let span = log_span(call.as_ref());
    let mut response = next.run(request).instrument(span).await;
    id.add_to_headers(response.headers_mut());
    // A call that failed before its first message has its status in the headers.
    end_by(response.headers_mut(), &id, &mut call);
    response.map(|inner| Body::new(ObservedBody { inner, id, call }))
}

/// The body of an answer, whose trailers end the call.
struct ObservedBody {
    inner: Body,
    id: RequestId,
    /// `None` after the call has ended, and for a method that is not ours.
    call: Option<ObservedCall>,
}

fn log_span(call: Option<&ObservedCall>) -> Span {
    call.map_or_else(Span::none, |call| call.log_span.clone())
}

/// Ends the call if these headers or trailers hold its status. Adds the id to a failure.
fn end_by(headers: &mut HeaderMap, id: &RequestId, call: &mut Option<ObservedCall>) {
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

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Self { inner, id, call } = &mut *self;
        let mut frame =
            ready!(log_span(call.as_ref()).in_scope(|| Pin::new(inner).poll_frame(context)));
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
