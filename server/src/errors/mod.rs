//! Why calls are refused or fail, as gRPC status. Modules have typed errors, which say how clients see them; this module alone
//! turns them into a status.

mod delivery_error;
mod service_error;

pub use delivery_error::DeliveryError;
pub use service_error::ServiceError;
pub(crate) use service_error::rejected;

pub use crate::refusal::REASONS;
