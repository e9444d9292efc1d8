//! Counts every call of our services once it has ended, however it ends.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tonic::Status;
use tower::{Layer, Service};

use crate::metrics::{Method, Metrics, SelectedModel};

/// Wraps services in [`CountCalls`].
#[derive(Clone)]
pub struct CountCallsLayer(pub Arc<Metrics>);

/// Counts calls by method, model, status and duration. A call finds a [`SelectedModel`] among its extensions, to leave
/// its model there.
#[derive(Clone)]
pub struct CountCalls<S> {
    metrics: Arc<Metrics>,
    inner: S,
}

/// An answer that tells how its call ended.
pub struct CountedBody<B> {
    inner: B,
    /// Until it has told.
    call: Option<Call>,
}

/// A call in progress; one that is dropped was cancelled.
struct Call {
    metrics: Arc<Metrics>,
    method: Arc<Method>,
    model: SelectedModel,
    started: Instant,
    ended: bool,
}

impl<S> Layer<S> for CountCallsLayer {
    type Service = CountCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CountCalls { metrics: Arc::clone(&self.0), inner }
    }
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for CountCalls<S>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<CountedBody<Outgoing>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        let call =
            self.metrics.methods.get(request.uri().path()).map(|method| Call::new(&self.metrics, method));
        if let Some(call) = &call {
            request.extensions_mut().insert(call.model.clone());
        }
        let response = self.inner.call(request);
        Box::pin(async move {
            let mut call = call;
            let response = response.await?;
            // A call that was refused, or failed before its first answer, has its status in the headers.
            if let Some(status) = Status::from_header_map(response.headers())
                && let Some(call) = call.take()
            {
                call.end(&status);
            }
            Ok(response.map(|inner| CountedBody { inner, call }))
        })
    }
}

impl<B: Body + Unpin> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(status) = frame.trailers_ref().and_then(Status::from_header_map)
            && let Some(call) = self.call.take()
        {
            call.end(&status);
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
    fn new(metrics: &Arc<Metrics>, method: Arc<Method>) -> Self {
        let metrics = Arc::clone(metrics);
        Self { metrics, method, model: SelectedModel::default(), started: Instant::now(), ended: false }
    }

    fn end(mut self, status: &Status) {
        self.ended = true;
        self.count(status);
    }

    fn count(&self, status: &Status) {
        self.metrics.methods.ended(&self.method, &self.model, status, self.started.elapsed());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            self.count(&Status::cancelled(""));
        }
    }
}
