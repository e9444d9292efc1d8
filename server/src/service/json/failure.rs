//! Writes errors as JSON, in the form of the Connect protocol, with reason, fields and retry beside it.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use prost::Message as _;
use serde::Serialize;
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;

use crate::service::reason::Reason;

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
///
/// # Panics
/// Never: texts and numbers are valid JSON.
pub fn failure(status: &Status) -> Response<Body> {
    let reason = status.get_details_error_info().map(|info| info.reason);
    let (code, http) = code(status.code());
    let http = reason.as_deref().and_then(http_status).unwrap_or(http);
    let retry = status
        .get_details_retry_info()
        .and_then(|retry| retry.retry_delay);
    let fields = status
        .get_details_bad_request()
        .into_iter()
        .flat_map(|bad| bad.field_violations);
    let details = tonic_types::pb::Status::decode(status.details())
        .unwrap_or_default()
        .details;
    let failure = Failure {
        code,
        message: status.message(),
        reason,
        fields: fields.map(|violation| violation.field).collect(),
        retry_after_seconds: retry.map(|delay| delay.as_secs_f64()),
        details: details.iter().map(Detail::of).collect(),
    };
    let json = serde_json::to_vec(&failure).expect("texts and numbers are valid JSON");
    let mut response = Response::new(Body::new(Full::from(json)));
    *response.status_mut() = http;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    match http {
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            headers.insert(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("gzip, zstd, identity"),
            );
        }
        _ => {}
    }
    if let Some(delay) = retry {
        response.headers_mut().insert(
            header::RETRY_AFTER,
            HeaderValue::from(delay.as_secs().max(1)),
        );
    }
    response
}

impl<'a> Detail<'a> {
    fn of(detail: &'a prost_types::Any) -> Self {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        Self {
            name,
            value: BASE64_STANDARD_NO_PAD.encode(&detail.value),
        }
    }
}

/// Returns the HTTP status of a reason, if HTTP has a status of its own for it.
fn http_status(reason: &str) -> Option<StatusCode> {
    let is = |known: Reason| reason == known.name();
    let statuses = [
        (Reason::HostNotAllowed, StatusCode::MISDIRECTED_REQUEST),
        (
            Reason::CompressionUnsupported,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            Reason::ContentTypeUnsupported,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            Reason::HttpMethodUnsupported,
            StatusCode::METHOD_NOT_ALLOWED,
        ),
        (
            Reason::HttpVersionUnsupported,
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        ),
    ];
    statuses
        .into_iter()
        .find(|(known, _)| is(*known))
        .map(|(_, status)| status)
}

/// Returns the name and the HTTP status of a code in the Connect protocol.
fn code(code: Code) -> (&'static str, StatusCode) {
    match code {
        Code::Ok | Code::Unknown => ("unknown", StatusCode::INTERNAL_SERVER_ERROR),
        // Closed by the client before the answer; there is no name for this status.
        Code::Cancelled => (
            "canceled",
            StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        ),
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
