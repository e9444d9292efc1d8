//! Replaces the errors of tonic and its services by errors of the same form as all others: those that occur before a handler
//! is called through [`explain`], those in the middle of a stream through [`explained`].

use axum::{extract::Request, middleware::Next, response::Response};
use bytes::Bytes;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{errors::ServiceError, refusal::Reason};

/// Explains responses that reject a request because its method is unknown, or because it is too long or is not the message
/// of its method.
pub(crate) async fn explain(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = Status::from_header_map(response.headers());
    let error = status.and_then(|status| explanation(&status, Some(path)));
    error.map_or(response, Status::into_http)
}

/// Explains the error of reading the next message of a stream.
pub(crate) fn explained(status: Status) -> Status {
    explanation(&status, None).unwrap_or(status)
}

/// Returns a status with code, `ErrorInfo` and advice for one of tonic's own; `None` for a status that has details.
fn explanation(status: &Status, path: Option<String>) -> Option<Status> {
    // The errors of this server have details, and those of tonic and its services have none.
    if !status.details().is_empty() {
        return cancelled(status);
    }
    let found = status.message().to_owned();
    let error = match status.code() {
        // The second is tonic's code for a message that exceeds the limit while it is decompressed.
        Code::OutOfRange | Code::ResourceExhausted => ServiceError::TooLong { found },
        // Tonic blames itself for what its decoder cannot read. A fault of the server has details.
        Code::Internal => ServiceError::Unreadable { found },
        // In the middle of a stream the method is known, and there is no path to name.
        Code::Unimplemented => ServiceError::UnknownMethod { path: path? },
        // Of the health service, which is not ours.
        Code::NotFound => ServiceError::UnknownService { message: found },
        _ => return None,
    };
    Some(error.into())
}

/// Returns the status of a request that broke off. It passes tonic under another code, because tonic takes a cancelled
/// request for one that has ended.
fn cancelled(status: &Status) -> Option<Status> {
    let info = status.get_details_error_info()?;
    if info.reason != Reason::REQUEST_BROKEN.name() {
        return None;
    }
    let details = Bytes::copy_from_slice(status.details());
    Some(Status::with_details(
        Code::Cancelled,
        status.message(),
        details,
    ))
}
