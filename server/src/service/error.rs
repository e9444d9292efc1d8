//! The errors of calls. Modules have typed errors; this file alone turns them into gRPC status.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{
    DeliveryError,
    classify::{self, Class},
    reason::Reason,
};
use crate::{
    admission::AdmissionError,
    call::{CallError, Limit},
    registry::AdminError,
    security::{HostError, TokenError},
};

/// Domain of the `ErrorInfo` of every error.
pub(super) const DOMAIN: &str = "hlorank";

/// Minimum and maximum of the delay after which a client may retry when the server is full.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

/// The reason why a call was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// A field is missing that the call needs.
    #[error("{field} is missing; {hint}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What to send.
        hint: &'static str,
    },
    /// The value of a field makes no sense.
    #[error("{field} is {found}, expected {expected}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// The call was not admitted.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A batch of a stream was refused.
    #[error("batch {batch}, whose configuration 0 is number {first} of the stream: {source}")]
    Batch {
        /// Number of the batch, from 0.
        batch: usize,
        /// Number of configurations before it.
        first: usize,
        /// The reason.
        source: CallError,
    },
    /// A header cannot be read.
    #[error("the header {name} is {found:?}, expected {expected}")]
    Header {
        /// Its name.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The host that the call names cannot be read, or is not one of this server.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The path is not that of a method.
    #[error(
        "the server has no method {path}; a path is /SERVICE/METHOD, and `grpcurl -plaintext ADDRESS list SERVICE` lists the \
         methods of a service such as hlorank.v1.CostModelService"
    )]
    UnknownMethod {
        /// The path.
        path: String,
    },
    /// The method of the path takes no JSON.
    #[error(
        "{path} is no method that takes JSON; streams take gRPC alone, and /openapi.json on the metrics port lists the others"
    )]
    NoJsonMethod {
        /// The path.
        path: String,
    },
    /// The health of something else than a service or a model is asked for.
    #[error(
        "the server has no service and no model of this name: {message}; ListModels lists the models"
    )]
    UnknownService {
        /// The words of the health service.
        message: String,
    },
    /// The request is not a POST.
    #[error("the HTTP method is {found}, but calls are POST requests")]
    HttpMethod {
        /// The method.
        found: String,
    },
    /// The request is neither gRPC with protobuf messages nor JSON.
    #[error(
        "the content type is {found:?}, but calls have application/grpc or application/grpc+proto over HTTP/2, or \
         application/json in UTF-8"
    )]
    ContentType {
        /// The content type.
        found: String,
    },
    /// gRPC over HTTP/1.
    #[error(
        "gRPC needs HTTP/2, but the request has {found}; calls with the content type application/json may use HTTP/1.1"
    )]
    HttpVersion {
        /// The version.
        found: String,
    },
    /// No model has this name, whatever its state.
    #[error("no model is named `{name}`; ListModels lists them")]
    UnknownModel {
        /// The requested name.
        name: String,
    },
    /// No version has this number, whatever its state.
    #[error("model `{name}` has no version {version}, or none that serves; ListModels lists them")]
    UnknownVersion {
        /// The model.
        name: String,
        /// The requested version; 0 for the one that serves.
        version: u64,
    },
    /// A message was not received.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// An admin call was not carried out.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The token does not allow the call.
    #[error(transparent)]
    Token(TokenError),
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
        let (code, reason, field) = error.classify();
        let message = error.to_string();
        let limit = error.limit().map(Limit::metadata).unwrap_or_default();
        let mut details = ErrorDetails::with_error_info(reason.name(), DOMAIN, limit);
        if let Some(field) = field.or_else(|| error.own_field()) {
            details.add_bad_request_violation(field, message.clone());
        }
        // A message that is too large stays so, and a store that is full until someone deletes.
        let stays = [
            Reason::MessageTooLarge,
            Reason::MeasurementsFull,
            Reason::StreamAhead,
        ]
        .contains(&reason);
        if code == Code::ResourceExhausted && !stays {
            let [least, most] = RETRY_DELAYS;
            details.set_retry_info(Some(error.room_in().clamp(least, most)));
        }
        if code == Code::Internal {
            tracing::error!(reason = reason.name(), %error, "internal error");
        }
        Self::with_error_details(code, message, details)
    }
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<AdmissionError> for Status {
    fn from(error: AdmissionError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<DeliveryError> for Status {
    fn from(error: DeliveryError) -> Self {
        ServiceError::from(error).into()
    }
}

impl ServiceError {
    /// The exceeded limit, if it has a number.
    fn limit(&self) -> Option<Limit> {
        match self {
            Self::Delivery(error) => error.limit(),
            Self::Admission(error) => {
                let limit = error.limit();
                Some(Limit::of(limit.setting(), None, limit.number() as usize))
            }
            error => error.call()?.limit(),
        }
    }

    /// Estimated time until the server has room for what it refused; zero if it is not known.
    fn room_in(&self) -> Duration {
        match self {
            Self::Admission(error) => error.room_in(),
            error => error.call().map(CallError::room_in).unwrap_or_default(),
        }
    }

    /// The field or header to blame, if it depends on the message.
    fn own_field(&self) -> Option<&str> {
        match self {
            Self::Header { name, .. } => Some(name),
            Self::Host(_) => Some("host"),
            Self::Delivery(DeliveryError::Encoding { header, .. }) => Some(header),
            Self::Delivery(DeliveryError::Json { field, .. }) if field != "." => Some(field),
            _ => None,
        }
    }

    fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(error) | Self::Batch { source: error, .. } => Some(error),
            _ => None,
        }
    }

    fn classify(&self) -> Class {
        match self {
            Self::Missing { field, .. } => {
                (Code::InvalidArgument, Reason::FieldMissing, Some(field))
            }
            Self::Invalid { field, .. } => {
                (Code::InvalidArgument, Reason::FieldInvalid, Some(field))
            }
            Self::Admission(error) => classify::admission(error),
            Self::Call(error) | Self::Batch { source: error, .. } => classify::call(error),
            Self::UnknownModel { .. } | Self::UnknownVersion { .. } => {
                (Code::NotFound, Reason::ModelNotFound, None)
            }
            Self::Delivery(error) => classify::delivery(error),
            Self::Admin(error) => classify::admin(error),
            Self::Header { .. } => (Code::InvalidArgument, Reason::HeaderInvalid, None),
            Self::Host(HostError::NotAllowed { .. }) => {
                (Code::PermissionDenied, Reason::HostNotAllowed, None)
            }
            Self::Host(_) => (Code::InvalidArgument, Reason::HostInvalid, None),
            Self::UnknownMethod { .. } | Self::NoJsonMethod { .. } => {
                (Code::Unimplemented, Reason::MethodUnknown, None)
            }
            Self::UnknownService { .. } => (Code::NotFound, Reason::ServiceUnknown, None),
            Self::HttpMethod { .. } => (Code::Unimplemented, Reason::HttpMethodUnsupported, None),
            Self::ContentType { .. } => (Code::Unimplemented, Reason::ContentTypeUnsupported, None),
            Self::HttpVersion { .. } => (Code::Unimplemented, Reason::HttpVersionUnsupported, None),
            Self::Token(error) => classify::token(error),
        }
    }
}
