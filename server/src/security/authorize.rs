use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{Either, Ready, ready};
use hlorank_proto::methods::{Method, Scope};
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use tonic::Status;
use tower::{Layer, Service};

use super::{
    tokens::{TokenFile, Tokens},
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
        let permit = match &self.tokens {
            Some(tokens) => permit(&tokens.current(), request.uri().path(), request.headers()),
            None => Ok(Permit::of_everyone()),
        };
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => return Either::Right(ready(Ok(Status::from(error).into_http()))),
        };
        let extensions = request.extensions_mut();
        if permit.is_admin {
            extensions.insert(AdminScope);
        }
        if let Some(name) = permit.token {
            extensions.insert(TokenName(name));
        }
        // No handler or log can disclose the token.
        request.headers_mut().remove(AUTHORIZATION);
        Either::Left(self.inner.call(request))
    }
}

/// What a call may do.
struct Permit {
    /// Name of its token; `None` if it needs none.
    token: Option<Arc<str>>,
    is_admin: bool,
}

impl Permit {
    /// Without a file of tokens, every call may do everything.
    fn of_everyone() -> Self {
        Self {
            token: None,
            is_admin: true,
        }
    }
}

/// Returns what a call may do, or why it is rejected.
fn permit(tokens: &Tokens, path: &str, headers: &HeaderMap) -> Result<Permit, ServiceError> {
    let method = Method::at(path);
    if let Some(Method { scope: None, .. }) = method {
        return Ok(Permit {
            token: None,
            is_admin: false,
        });
    }
    let token = bearer(headers)?;
    let holder = tokens.holder(token).ok_or(ServiceError::TokenUnknown)?;
    // A method without a description never reaches a service, because nothing says which tokens may call it.
    let unknown = || ServiceError::UnknownMethod {
        path: path.to_owned(),
    };
    let required = method.and_then(|method| method.scope).ok_or_else(unknown)?;
    if !holder.allows(required) {
        return Err(ServiceError::ScopeMissing {
            name: holder.name.to_string(),
            scope: required,
        });
    }
    Ok(Permit {
        token: Some(Arc::clone(&holder.name)),
        is_admin: holder.allows(Scope::Admin),
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
    use hlorank_graph::Digest;
    use hlorank_proto::methods::METHODS;
    use prost_reflect::DescriptorPool;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::security::watched::Source as _;

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

    /// Tokens of a reader, `reader`, and of an operator, `operator`.
    fn tokens() -> Tokens {
        let line = |name: &str, scopes: &str| {
            let digest = Digest(Sha256::digest(name).into());
            format!("{name} {scopes} sha256:{digest}\n")
        };
        let text = line("reader", "read") + &line("operator", "read,admin");
        let file = TokenFile("tokens".into());
        file.build(&[text.into_bytes()]).unwrap()
    }

    /// Calls a method, and returns whether the call is an operator's, or why it is rejected.
    fn call(path: &str, token: Option<&str>) -> Result<bool, ServiceError> {
        let value = token.map(|token| format!("Bearer {token}").parse().unwrap());
        let headers = HeaderMap::from_iter(value.map(|value| (AUTHORIZATION, value)));
        permit(&tokens(), path, &headers).map(|permit| permit.is_admin)
    }

    #[test]
    fn only_health_checks_need_no_token() {
        assert!(matches!(
            call("/grpc.health.v1.Health/Check", None),
            Ok(false)
        ));
        assert!(matches!(
            call("/grpc.health.v1.Health/Watch", None),
            Ok(false)
        ));
        for path in [
            "/grpc.health.v1.Health/Nothing",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "/no.such.Service/Method",
            "/",
            "",
        ] {
            let refused = call(path, None);
            assert!(matches!(refused, Err(ServiceError::TokenMissing)), "{path}");
        }
        for method in METHODS {
            let path = format!("/{}/{}", method.service, method.name);
            let refused = call(&path, None);
            assert!(matches!(refused, Err(ServiceError::TokenMissing)), "{path}");
        }
    }

    #[test]
    fn a_reader_calls_what_the_options_open_to_readers() {
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert!(matches!(call(reflection, Some("reader")), Ok(false)));
        for method in METHODS {
            let path = format!("/{}/{}", method.service, method.name);
            assert!(matches!(call(&path, Some("operator")), Ok(true)), "{path}");
            match (method.scope, call(&path, Some("reader"))) {
                (Some(Scope::Read), Ok(false))
                | (Some(Scope::Admin), Err(ServiceError::ScopeMissing { .. })) => (),
                (_, answer) => panic!("{path}: {answer:?}"),
            }
        }
    }

    #[test]
    fn operators_alone_change_versions_and_delete_and_disclose_what_was_measured() {
        for path in [
            "/hlorank.v1.CostModelService/DeleteMeasurements",
            "/hlorank.v1.CostModelService/GetMeasuredGraph",
            "/hlorank.v1.ModelService/CompareModels",
            "/hlorank.v1.ModelAdminService/Pin",
            "/hlorank.v1.ModelAdminService/Reload",
        ] {
            let refused = call(path, Some("reader"));
            assert!(
                matches!(refused, Err(ServiceError::ScopeMissing { .. })),
                "{path}"
            );
        }
    }

    #[test]
    fn a_method_without_a_description_is_closed_to_everybody() {
        for path in [
            "/hlorank.v1.CostModelService/Forgotten",
            "/hlorank.v1.ForgottenService/RankConfigs",
            "/no.such.Service/Method",
            "/",
            "",
        ] {
            for token in ["reader", "operator"] {
                let refused = call(path, Some(token));
                assert!(
                    matches!(refused, Err(ServiceError::UnknownMethod { .. })),
                    "{path}"
                );
            }
        }
    }

    #[test]
    fn every_method_of_other_projects_is_described() {
        for set in [
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            let pool = DescriptorPool::decode(set).unwrap();
            for method in pool
                .services()
                .flat_map(|service| service.methods().collect::<Vec<_>>())
            {
                let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
                let described = Method::at(&path).unwrap_or_else(|| panic!("{path}"));
                assert_eq!(described.is_stream, method.is_client_streaming(), "{path}");
            }
        }
    }
}
