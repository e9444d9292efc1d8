//! The metrics of the server for Prometheus, which `/metrics` exports and `deploy/METRICS.md` lists.
//!
//! A metric is a [`Family`], a constant beside the struct that holds its series. It is the only place with the metric's
//! name, labels and help. Its series are registered when the struct is created, so that every series is exported, at
//! zero, before anything happens. To add a metric, write the constant, register it in the struct's `new`, update it
//! through the field, and add its line to `deploy/METRICS.md`: a test prints the missing line.
//!
//! ```ignore
//! const RELOADS: Family<Counter, 2> = Family::new("hlorank_model_reloads_total", ["model", "result"], "Reloads…");
//! // In `ModelSeries::new`, for a metric of one model:
//! let failed = RELOADS.series(recorder, [model, "failed"]);
//! // Elsewhere, with the `Arc<Metrics>`:
//! metrics.model(name).reloads.failed.increment(1);
//! ```
//!
//! Several servers in one process have separate metrics, so there is no global recorder. Label values come from lists
//! of ours and from the names of the registry's models, never from a request.

mod caches;
mod calls;
mod family;
mod life_cycle;
mod load;
mod methods;
mod model;
mod process;
mod quality;
mod recorder;
mod security;
mod server;
mod stages;
mod store;

pub use caches::{CacheSeries, GraphCacheSeries};
pub use calls::{CallSeries, code_name};
pub use family::{Family, Handle, set};
pub use life_cycle::{LoadingSeries, VersionSeries};
pub use load::LoadSeries;
pub use methods::{Method, Methods};
pub use model::ModelSeries;
pub use quality::QualitySeries;
pub use recorder::Recorder;
pub use security::{ConnectionSeries, ReloadSeries, SecuritySeries};
pub use server::Metrics;
pub use stages::StageSeries;
pub use store::StoreSeries;
