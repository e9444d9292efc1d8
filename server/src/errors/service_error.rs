use std::time::Duration;

use http::Response;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{
    DeliveryError,
    classify::{Class, Classify, classify},
    reason::Reason,
};
use crate::{
    admission::AdmissionError,
    call::{CallError, Limit},
    registry::AdminError,
    security::{HostError, TokenError},
};

/// Domain of the `ErrorInfo` of every error.
pub(crate) const DOMAIN: &str = "hlorank";

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
        let message = error.to_string();
        let Class { reason, field } = error.classify();
        // Clients know the errors of their requests, and metrics count them. Only a fault of the
        // server is worth a line in its log.
        if reason.code() == Code::Internal {
            tracing::error!(reason = reason.name(), %error, "internal error");
        }
        let mut details = error.details(reason);
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

    /// A text of a field has more than `limit` bytes. It is not quoted because it may be megabytes
    /// long.
    pub(crate) fn too_long(field: &'static str, bytes: usize, limit: usize) -> Self {
        let found = format!("{bytes} bytes long");
        Self::invalid(field, found, format!("at most {limit} bytes"))
    }

    fn details(&self, reason: Reason) -> ErrorDetails {
        let limit = self.limit().map(Limit::metadata).unwrap_or_default();
        let mut details = ErrorDetails::with_error_info(reason.name(), DOMAIN, limit);
        if reason.is_temporary() {
            // The estimate is zero if it is not known, and never certain: clients that come back at
            // once would keep the server full, and a long wait would leave it idle.
            let [least, most] = RETRY_DELAYS;
            details.set_retry_info(Some(self.room_in().clamp(least, most)));
        }
        details
    }

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

    fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(error) | Self::Batch { source: error, .. } => Some(error),
            _ => None,
        }
    }
}

classify! { ServiceError:
    {
        Self::Missing { field, .. } => Class::of(Reason::FieldMissing).at(field),
        Self::Invalid { field, .. } => Class::of(Reason::FieldInvalid).at(field),
        Self::Header { name, .. } => Class::of(Reason::HeaderInvalid).at(name),
        Self::Admission(error) => error.classify(),
        Self::Call(error) | Self::Batch { source: error, .. } => error.classify(),
        Self::Delivery(error) => error.classify(),
        Self::Admin(error) => error.classify(),
        Self::Host(error) => error.classify().at("host"),
        Self::Token(error) => error.classify(),
    }
    UnknownModel | UnknownVersion => ModelNotFound,
    UnknownMethod | NoJsonMethod => MethodUnknown,
    UnknownService => ServiceUnknown,
    HttpMethod => HttpMethodUnsupported,
    ContentType => ContentTypeUnsupported,
    HttpVersion => HttpVersionUnsupported,
}
