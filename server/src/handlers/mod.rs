//! The handlers of the gRPC services. Each method reads the request, does the work and writes the answer.
//!
//! `cost_model_service` has the methods of the service, and a file for each subject has what they do. A handler that scores makes three
//! calls: it opens a [query](crate::queries) with what `request` reads, scores a batch, and answers with what `answer` writes.
//! Streams score several batches before they answer, and suggestions score what they choose from. What several methods read is
//! checked in `request` alone, before any memory is taken for it; what only the graph or the model can tell is checked where
//! these are known. Handlers know neither JSON nor compression, which the [translations](crate::translations) around them hide.

mod answer;
mod cost_model_service;
mod decision_value;
mod decisions;
mod leases;
mod measurements;
mod model_admin;
mod models;
mod put_graph;
mod rank_configs;
mod rank_configs_stream;
mod request;
mod suggest_configs;

pub use decision_value::check_decision_value;
pub(crate) use model_admin::ModelAdmin;
pub(crate) use models::Models;
pub(crate) use request::CostModel;
