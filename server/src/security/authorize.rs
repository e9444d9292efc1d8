use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{Either, Ready, ready};
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use tonic::Status;
use tower::{Layer, Service};

use super::{
    Scope,
    tokens::{Token, TokenFile, Tokens},
    watched::Watched,
};
use crate::{
    service::ServiceError,
    session::{AdminScope, TokenName},
};

/// Wraps services in [`Authorize`].
#[derive(Clone)]
pub(crate) struct AuthorizeLayer(pub(super) Option<Arc<Watched<TokenFile>>>);

/// Rejects calls without a token that allows them, before their messages are read.
#[derive(Clone)]
pub(crate) struct Authorize<S> {
    tokens: Option<Arc<Watched<TokenFile>>>,
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
        let Some(tokens) = &self.tokens else {
            request.extensions_mut().insert(AdminScope);
            request.headers_mut().remove(AUTHORIZATION);
            return Either::Left(self.inner.call(request));
        };
        if let Some(scope) = required_scope(request.uri().path()) {
            let tokens = tokens.current();
            let holder = match authorize(&tokens, request.headers(), scope) {
                Ok(holder) => holder,
                Err(error) => return Either::Right(ready(Ok(Status::from(error).into_http()))),
            };
            if holder.allows(Scope::Admin) {
                request.extensions_mut().insert(AdminScope);
            }
            request
                .extensions_mut()
                .insert(TokenName(Arc::clone(&holder.name)));
        }
        // No handler or log can disclose the token.
        request.headers_mut().remove(AUTHORIZATION);
        Either::Left(self.inner.call(request))
    }
}

/// Methods that delete or read what other clients sent, or that take much processor time.
const OPERATORS: [&str; 3] = ["/DeleteMeasurements", "/GetMeasuredGraph", "/CompareModels"];

/// Returns the scope that a method requires; `None` for health checks, which need no token.
fn required_scope(path: &str) -> Option<Scope> {
    match path.split('/').nth(1) {
        Some("grpc.health.v1.Health") => None,
        Some("hlorank.v1.ModelAdminService") => Some(Scope::Admin),
        // What is deleted is gone for all clients.
        _ if OPERATORS.iter().any(|method| path.ends_with(method)) => Some(Scope::Admin),
        _ => Some(Scope::Read),
    }
}

/// Returns the token that allows a call.
fn authorize<'a>(
    tokens: &'a Tokens,
    headers: &HeaderMap,
    scope: Scope,
) -> Result<&'a Token, ServiceError> {
    let token = bearer(headers)?;
    let holder = tokens.holder(token).ok_or(ServiceError::TokenUnknown)?;
    if holder.allows(scope) {
        return Ok(holder);
    }
    Err(ServiceError::ScopeMissing {
        name: holder.name.to_string(),
        scope,
    })
}

/// Returns the token of `authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Result<&[u8], ServiceError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(ServiceError::TokenMissing)?;
    let split = value.as_bytes().split_at_checked(b"Bearer ".len());
    let token = split.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    let (_, token) = token
        .filter(|_| values.next().is_none())
        .ok_or(ServiceError::TokenUnreadable)?;
    Ok(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_read() {
        let token = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).ok().map(<[u8]>::to_vec)
        };
        assert_eq!(token("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(token("bearer  abc "), Some(b"abc".to_vec()));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("abc"), None);
        assert!(matches!(
            bearer(&HeaderMap::new()),
            Err(ServiceError::TokenMissing)
        ));
        let mut twice = HeaderMap::new();
        twice.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        twice.append(AUTHORIZATION, "Bearer b".parse().unwrap());
        assert!(matches!(bearer(&twice), Err(ServiceError::TokenUnreadable)));
    }

    #[test]
    fn every_service_but_health_requires_a_scope() {
        assert_eq!(required_scope("/grpc.health.v1.Health/Check"), None);
        assert_eq!(
            required_scope("/hlorank.v1.ModelAdminService/Pin"),
            Some(Scope::Admin)
        );
        for path in [
            "/hlorank.v1.CostModelService/DeleteMeasurements",
            "/hlorank.v1.CostModelService/GetMeasuredGraph",
            "/hlorank.v1.ModelService/CompareModels",
        ] {
            assert_eq!(required_scope(path), Some(Scope::Admin));
        }
        for path in [
            "/hlorank.v1.CostModelService/RankConfigs",
            "/no.such.Service/Method",
            "/",
            "",
        ] {
            assert_eq!(required_scope(path), Some(Scope::Read), "{path}");
        }
    }
}
