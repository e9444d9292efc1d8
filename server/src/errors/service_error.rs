use std::time::Duration;

use hlorank_graph::GraphError;
use http::Response;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::DeliveryError;
use crate::{
    admission::AdmissionError,
    call::{CallError, MeasurementError},
    compute::WorkerFailed,
    leases::LeaseError,
    memory::MemoryFull,
    refusal::{Refusal, Refused as _, refusals},
    registry::{AdminError, SelectError},
    security::{HostError, TokenError},
    store::StoreError,
};

/// Domain of the `ErrorInfo` of every error.
const DOMAIN: &str = "hlorank";

/// Minimum and maximum of the delay after which a client may retry when the server is full.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

refusals! {
    /// The reason why a call was refused or failed.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum ServiceError {
        #[error("{field} is missing; {hint}")]
        Missing { field: &'static str, hint: &'static str } => FIELD_MISSING.at(field),
        #[error("{field} is {found}, expected {expected}")]
        Invalid { field: &'static str, found: String, expected: String } => FIELD_INVALID.at(field),
        #[error(transparent)]
        Admission(#[from] error: AdmissionError) => error.refusal(),
        #[error(transparent)]
        Call(#[from] error: CallError) => error.refusal(),
        #[error("batch {batch}, whose configuration 0 is number {first} of the stream: {source}")]
        Batch { batch: usize, first: usize, source: CallError } => source.refusal(),
        #[error("the header {name} is {found:?}, expected {expected}")]
        Header { name: &'static str, found: String, expected: &'static str } => HEADER_INVALID.at(name),
        #[error(transparent)]
        Host(#[from] error: HostError) => error.refusal(),
        #[error(
            "the server has no method {path}; a path is /SERVICE/METHOD, and `grpcurl -plaintext ADDRESS list SERVICE` lists \
             the methods of a service such as hlorank.v1.CostModelService"
        )]
        UnknownMethod { path: String } => METHOD_UNKNOWN,
        #[error(
            "{path} is no method that takes JSON; streams take gRPC alone, and /openapi.json on the metrics port lists the \
             others"
        )]
        NoJsonMethod { path: String } => METHOD_UNKNOWN,
        #[error("the server has no service and no model of this name: {message}; ListModels lists the models")]
        UnknownService { message: String } => SERVICE_UNKNOWN,
        #[error("the request is not a readable message of this method: {found}")]
        Unreadable { found: String } => REQUEST_MALFORMED,
        #[error(
            "the request is too long ({found}); send fewer configurations at a time, or raise --max-message-bytes on the server"
        )]
        TooLong { found: String } => MESSAGE_TOO_LARGE.limit("--max-message-bytes"),
        #[error("the HTTP method is {found}, but calls are POST requests")]
        HttpMethod { found: String } => HTTP_METHOD_UNSUPPORTED,
        #[error(
            "the content type is {found:?}, but calls have application/grpc or application/grpc+proto over HTTP/2, or \
             application/json in UTF-8"
        )]
        ContentType { found: String } => CONTENT_TYPE_UNSUPPORTED,
        #[error(
            "gRPC needs HTTP/2, but the request has {found}; calls with the content type application/json may use HTTP/1.1"
        )]
        HttpVersion { found: String } => HTTP_VERSION_UNSUPPORTED,
        #[error("no model is named `{name}`; ListModels lists them")]
        UnknownModel { name: String } => MODEL_NOT_FOUND,
        #[error("model `{name}` has no version {version}, or none that serves; ListModels lists them")]
        UnknownVersion { name: String, version: u64 } => MODEL_NOT_FOUND,
        #[error(transparent)]
        Delivery(#[from] error: DeliveryError) => error.refusal(),
        #[error(transparent)]
        Admin(#[from] error: AdminError) => error.refusal(),
        #[error(transparent)]
        Token(error: TokenError) => error.refusal(),
    }
}

impl From<TokenError> for ServiceError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::UnknownMethod { path } => Self::UnknownMethod { path },
            error => Self::Token(error),
        }
    }
}

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        let Refusal {
            reason,
            field,
            metadata,
            room_in,
        } = error.refusal();
        // Clients know the errors of their requests, and metrics count them. Only a fault of the
        // server is worth a line in its log.
        if reason.code() == Code::Internal {
            tracing::error!(reason = reason.name(), %error, "internal error");
        }
        let mut details = ErrorDetails::with_error_info(reason.name(), DOMAIN, metadata);
        if reason.is_temporary() {
            // The estimate is zero if it is not known, and never certain: clients that come back at
            // once would keep the server full, and a long wait would leave it idle.
            let [least, most] = RETRY_DELAYS;
            details.set_retry_info(Some(room_in.clamp(least, most)));
        }
        if let Some(field) = field {
            details.add_bad_request_violation(field, message.clone());
        }
        Self::with_error_details(reason.code(), message, details)
    }
}

/// Returns the response of gRPC that rejects a call.
pub(crate) fn rejected<B: Default>(error: impl Into<ServiceError>) -> Response<B> {
    Status::from(error.into()).into_http()
}

/// Converts errors to what they end a call with, through that which says so.
macro_rules! convert {
    ($($error:ty),+ => $through:ty => $end:ty) => {
        $(impl From<$error> for $end {
            fn from(error: $error) -> Self {
                <$through>::from(error).into()
            }
        })+
    };
}

convert!(AdmissionError, CallError, DeliveryError, MemoryFull, WorkerFailed => ServiceError => Status);
convert!(GraphError, LeaseError, MeasurementError, MemoryFull, SelectError, StoreError, WorkerFailed => CallError => ServiceError);

impl ServiceError {
    /// A field is missing; `hint` says what to send.
    pub(crate) const fn missing(field: &'static str, hint: &'static str) -> Self {
        Self::Missing { field, hint }
    }

    /// A field has a value that makes no sense.
    pub(crate) fn invalid(
        field: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Invalid {
            field,
            found: found.into(),
            expected: expected.into(),
        }
    }
}
