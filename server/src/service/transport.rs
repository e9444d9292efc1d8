//! Replaces the errors of tonic and its services by errors of the same form as all others: those that occur before a handler
//! is called through [`Explain`], those in the middle of a stream through [`explained`].

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use tonic::{Code, Status, body::Body};
use tonic_types::{ErrorDetails, StatusExt};
use tower::Service;

use super::{ServiceError, error::DOMAIN, reason::Reason};

/// Explains responses that reject a request because its method is unknown, or because it is too long or is not the message
/// of its method.
#[derive(Clone)]
pub struct Explain<S>(pub S);

impl<S, Incoming> Service<Request<Incoming>> for Explain<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let uri = request.uri().clone();
        let response = self.0.call(request);
        Box::pin(async move {
            let response = response.await?;
            let status = Status::from_header_map(response.headers());
            let error = status.and_then(|status| explain(&status, Some(&uri)));
            Ok(error.map_or(response, Status::into_http))
        })
    }
}

/// Explains the error of reading the next message of a stream.
pub(super) fn explained(status: Status) -> Status {
    explain(&status, None).unwrap_or(status)
}

/// Returns a status with code, `ErrorInfo` and advice for one of tonic's own; `None` for a status that has details.
fn explain(status: &Status, uri: Option<&Uri>) -> Option<Status> {
    if !status.details().is_empty() {
        return cancelled(status);
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
            error(
                Code::ResourceExhausted,
                Reason::MessageTooLarge.name(),
                metadata,
                message,
            )
        }
        Code::Internal => {
            let message = format!(
                "the request is not a readable message of this method: {}",
                status.message()
            );
            error(
                Code::InvalidArgument,
                Reason::RequestMalformed.name(),
                HashMap::new(),
                message,
            )
        }
        Code::Unimplemented => {
            let path = uri?.path().to_owned();
            Some(ServiceError::UnknownMethod { path }.into())
        }
        // Of the health service, which is not ours.
        Code::NotFound => Some(
            ServiceError::UnknownService {
                message: status.message().to_owned(),
            }
            .into(),
        ),
        _ => None,
    }
}

/// Returns the status of a request that broke off. It passes tonic under another code, because tonic takes a cancelled
/// request for one that has ended.
fn cancelled(status: &Status) -> Option<Status> {
    let info = status.get_details_error_info()?;
    let details = || Bytes::copy_from_slice(status.details());
    (info.reason == Reason::RequestBroken.name())
        .then(|| Status::with_details(Code::Cancelled, status.message(), details()))
}
