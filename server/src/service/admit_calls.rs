//! Counts a call as in flight, and the memory that it holds, from its headers until the last byte of its answer is
//! sent. A client that reads slowly therefore keeps both.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{Extensions, Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use tonic::{Status, body::Body, server::NamedService};
use tower::Service;

use crate::session::{Caller, Place, SessionError, Sessions};

/// Admits the calls of a service, or rejects them before their bodies are read.
#[derive(Clone)]
pub struct AdmitCalls<S> {
    inner: S,
    sessions: Sessions,
}

/// The body of an answer. Its call is in flight until the body is dropped.
struct AnswerBody {
    body: Body,
    /// The part of the last data frame that was not passed on yet.
    rest: Bytes,
    _call: Place,
}

/// Maximum size of the pieces of an answer that the transport receives. It asks for a piece as soon as the client
/// has room for a part of the previous one, so a call ends at most this many bytes before its answer is sent.
const PIECE_BYTES: usize = 16 << 10;

impl<S> AdmitCalls<S> {
    /// Wraps a service that scores in these sessions.
    pub fn new(inner: S, sessions: Sessions) -> Self {
        Self { inner, sessions }
    }
}

/// Returns the caller of the call with these extensions.
pub(super) fn caller(extensions: &Extensions) -> Caller {
    extensions.get().cloned().unwrap_or(Caller::Unknown)
}

impl<S: NamedService> NamedService for AdmitCalls<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for AdmitCalls<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let call = match self.sessions.admit(caller(request.extensions())) {
            Ok(call) => call,
            Err(error) => return Box::pin(async { Ok(Status::from(error).into_http()) }),
        };
        let mut request = request.map(|body| counted(body, call.clone()));
        request.extensions_mut().insert(call.clone());
        let response = self.inner.call(request);
        let answer_body = |body| Body::new(AnswerBody { body, rest: Bytes::new(), _call: call });
        Box::pin(async { Ok(response.await?.map(answer_body)) })
    }
}

/// Returns the body of a request whose bytes the call holds as they arrive.
fn counted(body: Body, call: Place) -> Body {
    let frames = BodyStream::new(body).map(move |frame: Result<Frame<Bytes>, Status>| {
        let frame = frame?;
        call.hold(frame.data_ref().map_or(0, Bytes::len)).map_err(SessionError::from)?;
        Ok::<_, Status>(frame)
    });
    Body::new(StreamBody::new(frames))
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?.map(Frame::into_data) {
                Some(Ok(data)) if data.len() > PIECE_BYTES => self.rest = data,
                Some(Ok(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                None => return Poll::Ready(None),
            }
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
