//! The gRPC services.

mod admission;
mod admit_calls;
mod answer;
mod compression;
mod configs_request;
mod cost_model;
mod deadline;
mod error;
mod graph_request;
mod limit;
mod model;
mod model_admin;
mod partial;
mod rank_stream;
mod read_request;
mod transport;

pub(crate) use admission::TokenName;
pub use admit_calls::AdmitCalls;
pub use compression::compress_like_request;
pub use cost_model::{Bounds, CostModel};
pub use deadline::{Deadline, DeadlinesLayer};
pub use error::{REASONS, ServiceError};
pub use model::Models;
pub use model_admin::ModelAdmin;
pub use read_request::{ReadRequest, read_request};
pub use transport::explain_response;
