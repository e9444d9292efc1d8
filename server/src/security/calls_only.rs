use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ALLOW, CONTENT_TYPE},
};
use tonic::body::Body;
use tower::Service;

use crate::service::is_json;

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
            Some(rejection) => Either::Right(ready(Ok(rejection))),
        }
    }
}

/// Returns the response to a request that is no call.
fn rejection<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.method() != Method::POST {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "calls are POST requests\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(response);
    }
    if is_json(request.headers()) {
        return None;
    }
    if !is_grpc(request.headers()) {
        let expected =
            "calls have the content type application/grpc, application/grpc+proto or application/json\n";
        return Some(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, expected));
    }
    let needs = "gRPC needs HTTP/2; calls with the content type application/json may use HTTP/1.1\n";
    (request.version() != Version::HTTP_2).then(|| plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, needs))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Returns whether the content type is that of gRPC with protobuf messages, with or without parameters.
fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(text) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |expected: &str| essence.eq_ignore_ascii_case(expected);
    is("application/grpc") || is("application/grpc+proto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_of_grpc_are_known() {
        let is_grpc = |text| is_grpc(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]));
        for good in ["application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8"] {
            assert!(is_grpc(good), "{good}");
        }
        for wrong in ["", "text/plain", "application/grpc-web", "application/grpc+json", "application/grpcx"]
        {
            assert!(!is_grpc(wrong), "{wrong}");
        }
    }
}
