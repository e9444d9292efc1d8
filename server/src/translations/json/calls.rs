use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::{Frame, SizeHint};
use tonic::Status;

use super::{failure::failure, method::JsonMethod};
use crate::{errors::ServiceError, translations::read_header};

/// Marks calls whose messages are JSON, for the delivery of their messages, and gives their answers and errors the form of
/// HTTP. Calls of gRPC over HTTP/2 pass unchanged; everything else is refused before any handler sees it.
pub(crate) async fn translate_json(mut request: Request, next: Next) -> Response {
    if let Some(error) = refusal(&request) {
        return failure(&error.into());
    }
    if !is_json(request.headers()) {
        return next.run(request).await;
    }
    match method(&request) {
        Ok(method) => {
            mark(&mut request, method);
            of_response(next.run(request).await)
        }
        Err(error) => failure(&error.into()),
    }
}

/// Returns why a request is no call.
fn refusal(request: &Request) -> Option<ServiceError> {
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

/// Returns whether the content type is that of JSON, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
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

/// Makes a request that of the same call of gRPC, whose message has another length.
fn mark(request: &mut Request, method: JsonMethod) {
    request.extensions_mut().insert(method);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.remove(CONTENT_LENGTH);
}

/// Returns the method of a call with JSON.
fn method(request: &Request) -> Result<JsonMethod, ServiceError> {
    // Clients need not name the protocol. Those that do name its version.
    let is_one = |text: &str| (text == "1").then_some(());
    read_header(request.headers(), "connect-protocol-version", is_one, "1")?;
    let path = request.uri().path();
    JsonMethod::of(path).ok_or_else(|| ServiceError::NoJsonMethod {
        path: path.to_owned(),
    })
}

/// Gives an answer or an error of gRPC the form of HTTP.
fn of_response(response: Response) -> Response {
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

fn as_json(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.map(|body| Body::new(AnswerBody(body)))
}

/// The body of an answer in JSON: that of an answer of gRPC, without its trailers.
struct AnswerBody(Body);

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // The layers inside have read the status of gRPC from the trailers, which are the last
        // frame. The body ends in their place.
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map(|frame| frame.filter(|frame| !frame.as_ref().is_ok_and(Frame::is_trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
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
