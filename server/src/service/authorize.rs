use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::{Request, Response, header::AUTHORIZATION};
use tower::{Layer, Service};

use super::error::rejected;
use crate::{admission::AdminScope, security::TokenCheck};

/// Wraps services in [`Authorize`].
#[derive(Clone)]
pub(crate) struct AuthorizeLayer(pub(crate) TokenCheck);

/// Rejects calls without a token that allows them, before their messages are read.
#[derive(Clone)]
pub(crate) struct Authorize<S> {
    tokens: TokenCheck,
    inner: S,
}

impl<S> Layer<S> for AuthorizeLayer {
    type Service = Authorize<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authorize {
            tokens: self.0.clone(),
            inner,
        }
    }
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for Authorize<S>
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

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        match self.tokens.check(request.uri().path(), request.headers()) {
            Ok(permission) => {
                let extensions = request.extensions_mut();
                if permission.is_admin {
                    extensions.insert(AdminScope);
                }
                // The limits per client count the calls of a token together, by its name.
                if let Some(token) = permission.token {
                    extensions.insert(token);
                }
                // No handler or log can disclose the token.
                request.headers_mut().remove(AUTHORIZATION);
                Either::Left(self.inner.call(request))
            }
            Err(error) => Either::Right(ready(Ok(rejected(error)))),
        }
    }
}
