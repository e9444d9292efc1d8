//! Learns from run times that a client measured: predicts ln(seconds) of configurations of one graph on one target.
//!
//! A Gaussian process on top of a frozen model. Its mean is the model's score times a slope, and its kernel has a
//! variance of its own for each group of properties: the score, the order of dimensions of every tensor (layouts) or the
//! bounds of a tile. The variances are those that make the measurements likely, and noise has a Student-t distribution, so
//! that an outlier has little influence.
//!
//! If few properties tell the measured configurations apart, learning takes time with the cube of their number (`columns`);
//! otherwise with the cube of the number of measurements (`gram`).
//!
//! Everything here is a pure function of the set of measurements, in 64 bits: measurements are sorted, sums have a fixed
//! order, and every step is taken a fixed number of times. Wire messages and the engine are unknown here.

mod cache;
mod column_scale;
mod columns;
mod confidence;
mod effects;
mod fill;
mod fit;
mod gram;
mod joint;
mod kendall;
mod kernel;
mod lengths;
mod linear_algebra;
mod matern;
mod measurements;
mod model;
mod node_columns;
mod normal;
mod partitions;
mod point;
mod pool;
mod prior;
mod slow_side;
mod solution;
mod sources;
mod suggest;
mod trees;

pub(crate) use cache::{AdaptedCache, SourcesCache};
pub(crate) use confidence::PredictedList;
pub(crate) use effects::{LayoutMeans, LayoutRows};
pub(crate) use measurements::{Measurement, Measurements};
pub(crate) use model::{AdaptedModel, Basis, MAX_SIZE, Prediction};
pub(crate) use normal::Normal;
pub(crate) use point::Point;
pub(crate) use pool::{Pool, PoolBasis, PoolRefusal};
pub(crate) use prior::Prior;
pub(crate) use sources::{SourceBasis, SourceRefusal, Sources, StudiedSources};
pub(crate) use suggest::{Candidates, Reason, Suggestion, SuggestionRequest};
