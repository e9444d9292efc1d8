//! How good a ranking is, against measured run times: the metrics of `TpuGraphs` (spec §8).

mod pairs;
mod slowdown;

pub use pairs::PairCounts;
pub use slowdown::{default_slowdown, top_slowdown};

/// What was measured of a configuration, and what the model thinks of it. Both are higher where it is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Measured run time, in any unit.
    pub run_time: f64,
    /// Score of the model.
    pub score: f64,
}
