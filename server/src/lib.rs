//! The server of hlorank: loads model artifacts, caches graphs, and ranks configurations of them over gRPC.
//!
//! A request flows through the layers, its handler in [`handlers`] (reads and checks it), [`graphs`] (the graph, once), a query that
//! reads its configurations, and [`engine`] (scores), and back; [`compute`] is where all of that which takes processor time runs, off
//! the async threads.

pub mod admission;
pub mod call;
mod caller;
mod clock;
pub mod compute;
mod device;
pub mod engine;
pub mod errors;
pub mod graphs;
mod handlers;
mod health;
mod layers;
mod learning;
pub mod leases;
mod listening;
mod manual;
pub mod memory;
pub mod metrics;
pub mod model;
mod monitoring;
mod or_off;
pub mod outcome;
mod pem_files;
mod quality;
mod queries;
pub mod ranking_quality;
mod refusal;
pub mod registry;
mod routers;
pub mod runtime;
mod searches;
pub mod security;
mod serve;
mod serve_connection;
pub mod settings;
mod start_error;
pub mod store;
mod stored_measurements;
mod suggestions;
pub mod telemetry;
pub mod translations;

pub use handlers::check_decision_value;
pub use serve::{RunningServer, start};
pub use start_error::StartError;
