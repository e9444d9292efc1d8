//! Counts a call from its headers until the last byte of its answer was sent: its place among the requests, and what it
//! holds in memory. A client that reads slowly keeps both.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body, server::NamedService};
use tower::Service;

use super::{
    CostModel, ServiceError,
    admission::{Admitted, Caller},
};
use crate::memory::{Held, MemoryFull};

/// Admits the calls of a service, or refuses them before anything of their bodies is read.
#[derive(Clone)]
pub struct AdmitCalls<S> {
    inner: S,
    cost_model: CostModel,
}

/// A call that was admitted, for whoever serves it.
#[derive(Clone)]
pub(super) struct AdmittedCall {
    held: Arc<Mutex<Held>>,
    _admitted: Arc<Admitted>,
}

/// The body of a request, whose bytes the call holds as they arrive.
struct Arriving {
    body: Body,
    call: AdmittedCall,
}

/// The body of an answer, which the call lasts until the end of.
struct Leaving {
    body: Body,
    /// Of what the body gave.
    rest: Bytes,
    _call: AdmittedCall,
}

/// Bytes of an answer that the transport is given at a time. It takes the next as soon as the client has room for some of
/// the last, so an answer is at its end but for so many bytes.
const PIECE_BYTES: usize = 16 << 10;

impl<S> AdmitCalls<S> {
    /// Of a service of this cost model.
    pub fn new(inner: S, cost_model: CostModel) -> Self {
        Self { inner, cost_model }
    }
}

impl AdmittedCall {
    pub(super) fn new(admitted: Admitted, held: Held) -> Self {
        Self { held: Arc::new(Mutex::new(held)), _admitted: Arc::new(admitted) }
    }

    /// Of a request with these extensions; `None` where the service is called without [`AdmitCalls`].
    pub(super) fn of_request(extensions: &Extensions) -> Option<Self> {
        extensions.get().cloned()
    }

    /// Holds so many bytes beside what it holds.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), MemoryFull> {
        self.held().add(bytes)
    }

    /// Holds so many bytes and no more.
    pub(super) fn hold_only(&self, bytes: usize) {
        self.held().shrink_to(bytes);
    }

    /// Nothing panics while it holds the lock.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let call = match self.cost_model.admit(Caller::of_call(request.extensions())) {
            Ok(call) => call,
            Err(refused) => return Box::pin(async { Ok(Status::from(refused).into_http()) }),
        };
        let mut request = request.map(|body| Body::new(Arriving { body, call: call.clone() }));
        request.extensions_mut().insert(call.clone());
        let response = self.inner.call(request);
        let leaving = |body| Body::new(Leaving { body, rest: Bytes::new(), _call: call });
        Box::pin(async { Ok(response.await?.map(leaving)) })
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Err(full) = self.call.hold(data.len())
        {
            return Poll::Ready(Some(Err(ServiceError::from(full).into())));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl http_body::Body for Leaving {
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
