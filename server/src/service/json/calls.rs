use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{
    HeaderMap, HeaderValue, Request, Response,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use tonic::{Status, body::Body};
use tower::Service;

use super::{answer_body::AnswerBody, failure::failure, method::JsonMethod};

/// Marks calls whose messages are JSON, for the delivery of their messages, and gives their answers and errors the form of
/// HTTP. Calls of gRPC pass unchanged.
#[derive(Clone)]
pub struct JsonCalls<S>(pub S);

/// Returns whether the content type is that of JSON, with or without parameters.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(text) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

impl<S> Service<Request<Body>> for JsonCalls<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !is_json(request.headers()) {
            return Box::pin(self.0.call(request));
        }
        let Some(method) = JsonMethod::of(request.uri().path()) else {
            let message = format!(
                "{} is no method that takes JSON; streams take gRPC alone, and /openapi.json on the metrics port lists the \
                 others",
                request.uri().path()
            );
            return Box::pin(async move { Ok(as_json(failure(&Status::unimplemented(message)))) });
        };
        request.extensions_mut().insert(method);
        // What follows is the same call as one of gRPC.
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        request.headers_mut().remove(CONTENT_LENGTH);
        let response = self.0.call(request);
        Box::pin(async move { Ok(of_response(response.await?)) })
    }
}

fn of_response(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return as_json(response) };
    let mut failure = failure(&status);
    for (name, value) in response.headers() {
        let is_of_grpc = name.as_str().starts_with("grpc-") || *name == CONTENT_TYPE;
        if !is_of_grpc {
            failure.headers_mut().insert(name, value.clone());
        }
    }
    as_json(failure)
}

fn as_json(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.map(|body| Body::new(AnswerBody(body)))
}
