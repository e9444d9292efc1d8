//! Writes errors as JSON, in the form of the Connect protocol, with reason, fields and retry beside it.

use axum::{body::Body, response::Response};
use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use http::{HeaderValue, StatusCode, header};
use prost::Message as _;
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{metrics::code_name, refusal::Reason};

/// An error as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    code: String,
    message: &'a str,
    /// As in `google.rpc.ErrorInfo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The fields to blame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail<'a>>,
}

/// A message of the status, as Connect sends it.
#[derive(Serialize)]
struct Detail<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    value: String,
}

/// Returns the response with an error.
pub(super) fn failure(status: &Status) -> Response {
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| &*info.reason);
    let mut own = HTTP_STATUSES.into_iter();
    let own = own.find(|(own, _)| reason == Some(own.name()));
    let http = own.map_or_else(|| status_of(status.code()), |(_, http)| http);
    let retry = details.retry_info().and_then(|retry| retry.retry_delay);
    let violations = details.bad_request().into_iter();
    let violations = violations.flat_map(|bad| &bad.field_violations);
    // Connect sends the messages of the status as they are, beside what is read of them here.
    let sent = tonic_types::pb::Status::decode(status.details()).unwrap_or_default();
    let failure = Failure {
        code: name_of(status.code()),
        message: status.message(),
        reason,
        fields: violations.map(|violation| &*violation.field).collect(),
        retry_after_seconds: retry.map(|delay| delay.as_secs_f64()),
        details: sent.details.iter().map(Detail::new).collect(),
    };
    let json = serde_json::to_vec(&failure).expect("texts and numbers are valid JSON");
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = http;
    let headers = response.headers_mut();
    let mut add = |name, value| headers.insert(name, HeaderValue::from_static(value));
    add(header::CONTENT_TYPE, "application/json");
    // HTTP says in a header what a request may have instead.
    match http {
        StatusCode::METHOD_NOT_ALLOWED => add(header::ALLOW, "POST"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => add(header::ACCEPT_ENCODING, "gzip, identity"),
        _ => None,
    };
    if let Some(delay) = retry {
        // The header counts whole seconds, of which 0 would mean at once.
        let seconds = delay.as_secs().max(1);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl<'a> Detail<'a> {
    fn new(detail: &'a prost_types::Any) -> Self {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        Self {
            name,
            value: BASE64_STANDARD_NO_PAD.encode(&detail.value),
        }
    }
}

/// The reasons for which HTTP has a status of their own.
const HTTP_STATUSES: [(Reason, StatusCode); 5] = [
    (Reason::HOST_NOT_ALLOWED, StatusCode::MISDIRECTED_REQUEST),
    (
        Reason::COMPRESSION_UNSUPPORTED,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
    ),
    (
        Reason::CONTENT_TYPE_UNSUPPORTED,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
    ),
    (
        Reason::HTTP_METHOD_UNSUPPORTED,
        StatusCode::METHOD_NOT_ALLOWED,
    ),
    (
        Reason::HTTP_VERSION_UNSUPPORTED,
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
    ),
];

/// Returns the HTTP status of a code in the Connect protocol.
fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        // Closed by the client before the answer; there is no name for this status.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        // Not 412 for a failed precondition, because that status is about conditional requests.
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
    }
}

/// Returns the name of a code in the Connect protocol.
fn name_of(code: Code) -> String {
    match code {
        Code::Ok => name_of(Code::Unknown),
        Code::Cancelled => "canceled".to_owned(),
        code => code_name(code).to_ascii_lowercase(),
    }
}
