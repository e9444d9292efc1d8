//! What calls learn from measured run times: their own, stored ones, and those of kernels of the same structure. What is
//! learned predicts the run times of configurations in place of the model's scores.

mod evaluator;
mod judge;
mod learn;
mod lesson;
mod measured;
mod pool;
mod predict;

pub(crate) use evaluator::{Evaluator, PredictedBatch, ScoredConfigs};
pub(crate) use judge::Contradiction;
pub(crate) use learn::{Learner, Learning, WantedStored};
pub(crate) use lesson::{Adaptation, Lesson};
pub(crate) use predict::{Predictor, Scores, points};
