//! The metrics of the server for Prometheus, which `/metrics` exports and `deploy/METRICS.md` lists.
//!
//! The struct that holds the series of a metric makes them in its `new`, the only place with the metric's name, labels and
//! help. So every series is exported, at zero, before anything happens. To add a metric, add a field, make its series, update
//! it through the field, and add its line to `deploy/METRICS.md`: a test prints the missing line.
//!
//! Several servers in one process have separate metrics, so there is no global recorder. Label values come from lists
//! of ours and from the names of the registry's models, never from a request.

mod calls;
mod measurements;
mod model;
mod process;
mod recorder;
mod security;
mod server;
mod work;

pub use calls::{CallSeries, Method, Methods, code_name};
pub use measurements::{QualitySeries, StoreSeries};
pub use model::{LoadingSeries, ModelSeries, VersionSeries, WorkSeries};
pub use recorder::set;
pub use security::{ConnectionSeries, ReloadSeries, SecuritySeries};
pub use server::Metrics;
pub use work::{CacheSeries, CacheSize, CacheSizes, GraphCacheSeries, LoadSeries, StageSeries};
