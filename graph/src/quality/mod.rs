//! Quality of a ranking against measured run times: the metrics of `TpuGraphs` (spec §8).

mod outcome;
mod pairs;
mod slowdown;

pub use outcome::Outcome;
pub use pairs::PairCounts;
pub use slowdown::{default_slowdown, top_slowdown};
