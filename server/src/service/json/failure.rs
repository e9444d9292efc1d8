//! Writes errors as JSON, in the form of the Connect protocol, with reason, fields and retry beside it.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use prost::Message as _;
use serde::Serialize;
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;

/// An error as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    code: &'static str,
    message: &'a str,
    /// As in `google.rpc.ErrorInfo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The fields to blame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
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
pub(super) fn failure(status: &Status) -> Response<Body> {
    let (code, http) = code(status.code());
    let retry = status.get_details_retry_info().and_then(|retry| retry.retry_delay);
    let fields = status.get_details_bad_request().into_iter().flat_map(|bad| bad.field_violations);
    let details = tonic_types::pb::Status::decode(status.details()).unwrap_or_default().details;
    let failure = Failure {
        code,
        message: status.message(),
        reason: status.get_details_error_info().map(|info| info.reason),
        fields: fields.map(|violation| violation.field).collect(),
        retry_after_seconds: retry.map(|delay| delay.as_secs_f64()),
        details: details.iter().map(Detail::of).collect(),
    };
    let json = serde_json::to_vec(&failure).expect("texts and numbers are valid JSON");
    let mut response = Response::new(Body::new(Full::from(json)));
    *response.status_mut() = http;
    if let Some(delay) = retry {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(delay.as_secs().max(1)));
    }
    response
}

impl<'a> Detail<'a> {
    fn of(detail: &'a prost_types::Any) -> Self {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        Self { name, value: BASE64_STANDARD_NO_PAD.encode(&detail.value) }
    }
}

/// Returns the name and the HTTP status of a code in the Connect protocol.
fn code(code: Code) -> (&'static str, StatusCode) {
    match code {
        Code::Ok | Code::Unknown => ("unknown", StatusCode::INTERNAL_SERVER_ERROR),
        // Closed by the client before the answer; there is no name for this status.
        Code::Cancelled => ("canceled", StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)),
        Code::InvalidArgument => ("invalid_argument", StatusCode::BAD_REQUEST),
        Code::DeadlineExceeded => ("deadline_exceeded", StatusCode::GATEWAY_TIMEOUT),
        Code::NotFound => ("not_found", StatusCode::NOT_FOUND),
        Code::AlreadyExists => ("already_exists", StatusCode::CONFLICT),
        Code::PermissionDenied => ("permission_denied", StatusCode::FORBIDDEN),
        Code::ResourceExhausted => ("resource_exhausted", StatusCode::TOO_MANY_REQUESTS),
        Code::FailedPrecondition => ("failed_precondition", StatusCode::BAD_REQUEST),
        Code::Aborted => ("aborted", StatusCode::CONFLICT),
        Code::OutOfRange => ("out_of_range", StatusCode::BAD_REQUEST),
        Code::Unimplemented => ("unimplemented", StatusCode::NOT_IMPLEMENTED),
        Code::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unavailable => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        Code::DataLoss => ("data_loss", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unauthenticated => ("unauthenticated", StatusCode::UNAUTHORIZED),
    }
}
