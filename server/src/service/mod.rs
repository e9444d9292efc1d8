//! The gRPC services.

mod answer;
mod configs_request;
mod cost_model;
mod deadline;
mod error;
mod graph_request;
mod model;
mod rank_stream;
mod transport;

pub use cost_model::{Bounds, CacheBytes, CostModel};
pub use error::ServiceError;
pub use model::Models;
pub use transport::{ExplainRefusals, ExplainRefusalsLayer};
