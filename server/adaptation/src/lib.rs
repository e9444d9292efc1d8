//! Learns from run times that a client measured: predicts ln(seconds) of configurations of one graph on one target.
//!
//! A Gaussian process lies on what a frozen model leaves (`model`). Its mean is the model's score times a slope or, in doubt, no score
//! at all, weighed by how likely either makes the measurements. Its `kernel` has a variance of its own for each group of properties:
//! the score, the order of dimensions of every tensor (layouts), and the coordinates of a tile or a feature set, in units that
//! `lengths` learns. `fit` finds the variances that make the measurements likely, with Student-t noise, so that an outlier has
//! little influence; `covariance` solves for them, in time with the cube of the number of measurements or of properties, whichever
//! is smaller. What `related` lists say takes the place of scores, by boosted `trees`. `suggest` chooses what to measure by expected
//! improvement (`joint`), and the posterior says how far a ranking can be trusted (`confidence`).
//!
//! Everything here is a pure function of the set of measurements: measurements are sorted, sums have a fixed order, and every step is
//! taken a fixed number of times. This crate knows neither wire messages nor the engine.

mod column_scale;
mod confidence;
mod covariance;
mod effects;
mod fit;
mod joint;
mod kernel;
mod lengths;
mod linear_algebra;
mod measurements;
mod model;
mod point;
mod prior;
mod related;
pub mod split_mix;
pub mod statistics;
mod suggest;
mod trees;

pub use confidence::{ExpectedTau, PredictedList};
pub use effects::{LayoutMeans, LayoutRows};
pub use measurements::{Measurement, Measurements};
pub use model::{AdaptedModel, Basis, MAX_SIZE};
pub use point::Point;
pub use prior::{Prior, ScoreUnit};
pub use related::{
    Expectation, MAX_PARAMETERS, Refusal, RelatedBasis, RelatedList, RelatedModel, Slowdown,
    SourceKind, TaughtByLists, relate,
};
pub use suggest::{Candidates, Reason, Suggestion, SuggestionRequest};
