//! How well scores rank measured run times: of one graph, and over several.

mod graph_quality;
mod summary;

pub use graph_quality::{GraphQuality, TimeQuality};
pub use summary::QualitySummary;
