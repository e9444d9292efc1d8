//! Replaces the errors of tonic's decoder by errors of the same form as all others: those that occur before a handler is
//! called through [`explain_response`], those in the middle of a stream through [`explained`].

use std::collections::HashMap;

use http::Response;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{error::DOMAIN, reason::Reason};

/// Explains a response that rejects a request because it is too long or is not the message of its method.
#[must_use]
pub fn explain_response<B: Default>(response: Response<B>) -> Response<B> {
    let error = Status::from_header_map(response.headers()).and_then(|status| explain(&status));
    error.map_or(response, Status::into_http)
}

/// Explains the error of reading the next message of a stream.
pub(super) fn explained(status: Status) -> Status {
    explain(&status).unwrap_or(status)
}

/// Returns a status with code, `ErrorInfo` and advice for one of tonic's own; `None` for a status that has details.
fn explain(status: &Status) -> Option<Status> {
    if !status.details().is_empty() {
        return None;
    }
    let error = |code, reason, metadata, message| {
        let details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        Some(Status::with_error_details(code, message, details))
    };
    match status.code() {
        // The second is tonic's code for a message that exceeds the limit while it is decompressed.
        Code::OutOfRange | Code::ResourceExhausted => {
            let message = format!(
                "the request is too long ({}); send fewer configurations at a time, or raise --max-message-bytes on \
                 the server",
                status.message()
            );
            let metadata = HashMap::from([("limit".to_owned(), "--max-message-bytes".to_owned())]);
            error(Code::ResourceExhausted, Reason::MessageTooLarge.name(), metadata, message)
        }
        Code::Internal => {
            let message =
                format!("the request is not a readable message of this method: {}", status.message());
            error(Code::InvalidArgument, Reason::RequestMalformed.name(), HashMap::new(), message)
        }
        _ => None,
    }
}
