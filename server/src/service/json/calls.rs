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
use crate::service::{ServiceError, header::read_header};

/// Marks calls whose messages are JSON, for the delivery of their messages, and gives their answers and errors the form of
/// HTTP. Calls of gRPC pass unchanged.
#[derive(Clone)]
pub struct JsonCalls<S>(pub S);

/// Returns whether the content type is that of JSON, with or without parameters.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok());
    let mut parts = text.unwrap_or_default().split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    essence.eq_ignore_ascii_case("application/json") && parts.all(is_readable)
}

/// Returns whether a parameter of the content type leaves the text in UTF-8.
fn is_readable(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return true;
    };
    let is =
        |text: &str, expected: &str| text.trim().trim_matches('"').eq_ignore_ascii_case(expected);
    !is(name, "charset") || is(value, "utf-8") || is(value, "utf8")
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
        let method = match method(&request) {
            Ok(method) => method,
            Err(error) => return Box::pin(async move { Ok(as_json(failure(&error.into()))) }),
        };
        mark(&mut request, method);
        let response = self.0.call(request);
        Box::pin(async move { Ok(of_response(response.await?)) })
    }
}

/// Makes a request that of the same call of gRPC, whose message has another length.
fn mark<B>(request: &mut Request<B>, method: JsonMethod) {
    request.extensions_mut().insert(method);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.remove(CONTENT_LENGTH);
}

fn method<B>(request: &Request<B>) -> Result<JsonMethod, ServiceError> {
    // Clients need not name the protocol. Those that do name its version.
    let is_one = |text: &str| (text == "1").then_some(());
    read_header(request.headers(), "connect-protocol-version", is_one, "1")?;
    let path = request.uri().path();
    JsonMethod::of(path).ok_or_else(|| ServiceError::NoJsonMethod {
        path: path.to_owned(),
    })
}

fn of_response(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else {
        return as_json(response);
    };
    // What layers added, such as the id of the request, is kept. The rest is how gRPC says what the
    // body says here.
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
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.map(|body| Body::new(AnswerBody(body)))
}
