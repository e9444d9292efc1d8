//! The gRPC services.

mod adapt_request;
mod admit_calls;
mod answer;
mod batch_request;
mod classify;
mod compared_models;
mod compression;
mod cost_model;
mod deadline;
mod delivery;
mod error;
mod graph_request;
mod header;
mod json;
mod measurements_request;
mod model;
mod model_admin;
mod rank_stream;
mod read_request;
mod reason;
mod reflection;
mod suggest_request;
mod transport;

pub use admit_calls::AdmitCallsLayer;
pub use compression::compress_like_request;
pub use cost_model::CostModel;
pub use deadline::DeadlinesLayer;
pub use delivery::{DeliveryError, DeliverySettings};
pub use error::ServiceError;
pub use json::{JsonCalls, failure, is_json, openapi};
pub use model::Models;
pub use model_admin::ModelAdmin;
pub use read_request::{ReadRequest, read_request};
pub use reason::REASONS;
pub use reflection::Reflection;
pub use transport::Explain;
