//! Gives refusals that happen in tonic's decoder the same shape as all others: those before a service is called
//! through [`ExplainRefusals`], those in the middle of a stream through [`explained`].

use std::{
    collections::HashMap,
    task::{Context, Poll},
};

use http::{Request, Response};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::{Layer, Service};

use super::error::DOMAIN;

/// Wraps services in [`ExplainRefusals`].
#[derive(Clone, Copy, Debug)]
pub struct ExplainRefusalsLayer;

/// Explains a request that is too long or is not the message of its method: code, `ErrorInfo` and what to do.
#[derive(Clone, Debug)]
pub struct ExplainRefusals<S> {
    inner: S,
}

impl<S> Layer<S> for ExplainRefusalsLayer {
    type Service = ExplainRefusals<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ExplainRefusals { inner }
    }
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for ExplainRefusals<S>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    Outgoing: Default + 'static,
{
    type Response = Response<Outgoing>;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            let refusal = Status::from_header_map(response.headers()).and_then(|status| explain(&status));
            Ok(refusal.map_or(response, Status::into_http))
        })
    }
}

/// What came of reading the next message of a stream.
pub(super) fn explained(status: Status) -> Status {
    explain(&status).unwrap_or(status)
}

/// A better status for one of tonic's own; `None` for a status of ours.
fn explain(status: &Status) -> Option<Status> {
    if !status.details().is_empty() {
        return None;
    }
    let refused = |code, reason, metadata, message| {
        let details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        Some(Status::with_error_details(code, message, details))
    };
    match status.code() {
        // The second is what a message is that grows beyond the limit while it is decompressed.
        Code::OutOfRange | Code::ResourceExhausted => {
            let message = format!(
                "the request is too long ({}); send fewer configurations at a time, or raise --max-message-bytes on \
                 the server",
                status.message()
            );
            let metadata = HashMap::from([("limit".to_owned(), "--max-message-bytes".to_owned())]);
            refused(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", metadata, message)
        }
        Code::Internal => {
            let message =
                format!("the request is not a readable message of this method: {}", status.message());
            refused(Code::InvalidArgument, "REQUEST_MALFORMED", HashMap::new(), message)
        }
        _ => None,
    }
}
