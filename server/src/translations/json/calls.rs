use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use http::{
    HeaderValue, Method, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use tonic::Status;

use super::{failure::failure, request::JsonMethod};
use crate::{errors::ServiceError, translations::read_header};

/// How the messages of a call are written.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Grpc,
    Json,
}

/// Marks calls whose messages are JSON, for the delivery of their messages, and gives their answers and errors the form of
/// HTTP. Calls of gRPC over HTTP/2 pass unchanged; everything else is refused before any handler sees it.
pub(crate) async fn translate_json(mut request: Request, next: Next) -> Response {
    match json_method(&request) {
        Ok(None) => next.run(request).await,
        Ok(Some(method)) => {
            mark(&mut request, method);
            http_response(next.run(request).await)
        }
        Err(error) => failure(&error.into()),
    }
}

/// Returns the method of a call with JSON; `None` for a call of gRPC.
fn json_method(request: &Request) -> Result<Option<JsonMethod>, ServiceError> {
    if request.method() != Method::POST {
        return Err(ServiceError::HttpMethod {
            found: request.method().to_string(),
        });
    }
    // The content type is named in an error even if it is no text.
    let found = request
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes);
    let found = String::from_utf8_lossy(found.unwrap_or_default());
    match form(&found) {
        // gRPC ends its answers with trailers, and streams in both directions. JSON needs neither.
        Some(Form::Grpc) if request.version() == Version::HTTP_2 => Ok(None),
        Some(Form::Grpc) => Err(ServiceError::HttpVersion {
            found: format!("{:?}", request.version()),
        }),
        Some(Form::Json) => {
            // Clients need not name the protocol. Those that do name its version.
            let is_one = |text: &str| (text == "1").then_some(());
            read_header(request.headers(), "connect-protocol-version", is_one, "1")?;
            let path = request.uri().path();
            let unknown = || ServiceError::NoJsonMethod {
                path: path.to_owned(),
            };
            JsonMethod::at_path(path).map(Some).ok_or_else(unknown)
        }
        None => Err(ServiceError::ContentType {
            found: found.into_owned(),
        }),
    }
}

/// Returns the form that a content type names, with or without parameters.
fn form(content_type: &str) -> Option<Form> {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    match essence.as_str() {
        "application/grpc" | "application/grpc+proto" => Some(Form::Grpc),
        "application/json" => parts.all(is_readable).then_some(Form::Json),
        _ => None,
    }
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

/// Makes a request that of the same call of gRPC, whose message has another length.
fn mark(request: &mut Request, method: JsonMethod) {
    request.extensions_mut().insert(method);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.remove(CONTENT_LENGTH);
}

/// Gives an answer or an error of gRPC the form of HTTP.
fn http_response(mut response: Response) -> Response {
    let Some(status) = Status::from_header_map(response.headers()) else {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        // The layers inside have read the status of gRPC from the trailers, which are not data.
        return response.map(|body| Body::from_stream(body.into_data_stream()));
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
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_of_grpc_are_known() {
        for good in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC; charset=utf-8",
        ] {
            assert_eq!(form(good), Some(Form::Grpc), "{good}");
        }
        for wrong in [
            "",
            "text/plain",
            "application/grpc-web",
            "application/grpc+json",
            "application/grpcx",
        ] {
            assert_eq!(form(wrong), None, "{wrong}");
        }
    }
}
