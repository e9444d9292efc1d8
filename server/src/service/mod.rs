//! The gRPC services.

mod cost_model;
mod error;
mod model;
mod request;
mod transport;

pub use cost_model::{Bounds, CostModel};
pub use error::ServiceError;
pub use model::Models;
pub use transport::{ExplainRefusals, ExplainRefusalsLayer};
