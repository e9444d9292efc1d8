use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version, header::CONTENT_TYPE};
use tonic::body::Body;
use tower::Service;

use super::{ServiceError, failure, is_json};

/// Rejects requests that are neither gRPC over HTTP/2 nor JSON, before any handler sees them.
#[derive(Clone)]
pub(crate) struct CallsOnly<S>(pub(crate) S);

impl<S, Incoming> Service<Request<Incoming>> for CallsOnly<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        match rejection(&request) {
            None => Either::Left(self.0.call(request)),
            Some(rejection) => Either::Right(ready(Ok(failure(&rejection.into())))),
        }
    }
}

/// Returns why a request is no call.
fn rejection<B>(request: &Request<B>) -> Option<ServiceError> {
    if request.method() != Method::POST {
        return Some(ServiceError::HttpMethod {
            found: request.method().to_string(),
        });
    }
    if is_json(request.headers()) {
        return None;
    }
    if !is_grpc(request.headers()) {
        let found = content_type(request.headers());
        return Some(ServiceError::ContentType { found });
    }
    // gRPC ends its answers with trailers, and streams in both directions. JSON needs neither.
    let found = request.version();
    (found != Version::HTTP_2).then(|| ServiceError::HttpVersion {
        found: format!("{found:?}"),
    })
}

/// Returns the content type for an error, even if it is no text.
fn content_type(headers: &HeaderMap) -> String {
    let found = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
}

/// Returns whether the content type is that of gRPC with protobuf messages, with or without parameters.
fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok());
    let text = text.unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |expected: &str| essence.eq_ignore_ascii_case(expected);
    is("application/grpc") || is("application/grpc+proto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_of_grpc_are_known() {
        let is_grpc = |text| {
            is_grpc(&HeaderMap::from_iter([(
                CONTENT_TYPE,
                HeaderValue::from_static(text),
            )]))
        };
        for good in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC; charset=utf-8",
        ] {
            assert!(is_grpc(good), "{good}");
        }
        for wrong in [
            "",
            "text/plain",
            "application/grpc-web",
            "application/grpc+json",
            "application/grpcx",
        ] {
            assert!(!is_grpc(wrong), "{wrong}");
        }
    }
}
