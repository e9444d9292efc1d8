//! Why calls are refused or fail. Modules have typed errors; these files alone turn them into gRPC status.

mod classify;
mod delivery_error;
mod reason;
mod service_error;

pub use delivery_error::DeliveryError;
pub use reason::REASONS;
pub(crate) use reason::Reason;
pub use service_error::ServiceError;
pub(crate) use service_error::{DOMAIN, rejected};
