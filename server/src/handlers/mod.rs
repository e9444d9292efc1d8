//! The handlers of the gRPC services. Each method reads the request, does the work and writes the answer.

mod adapt_request;
mod answer;
mod compare_models;
mod cost_model;
mod cost_model_service;
mod kept_measurements;
mod model_admin;
mod models;
mod put_graph;
mod rank_configs;
mod rank_configs_stream;
mod read_request;
mod report_measurements;
mod request;
mod suggest_configs;

pub(crate) use cost_model::CostModel;
pub(crate) use model_admin::ModelAdmin;
pub(crate) use models::Models;
pub use read_request::{ReadRequest, read_request};
