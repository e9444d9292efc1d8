use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::{Request, Response};
use tower::{Layer, Service};

use super::error::rejected;
use crate::security::AllowedHosts;

/// Wraps services in [`CheckHost`].
#[derive(Clone)]
pub(crate) struct CheckHostLayer(pub(crate) AllowedHosts);

/// Rejects calls that name a host which is not one of this server, before their messages are read.
#[derive(Clone)]
pub(crate) struct CheckHost<S> {
    hosts: AllowedHosts,
    inner: S,
}

impl<S> Layer<S> for CheckHostLayer {
    type Service = CheckHost<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CheckHost {
            hosts: self.0.clone(),
            inner,
        }
    }
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for CheckHost<S>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing>>,
    Outgoing: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let hosts = &self.hosts;
        match hosts.check(request.version(), request.uri(), request.headers()) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(error) => Either::Right(ready(Ok(rejected(error)))),
        }
    }
}
