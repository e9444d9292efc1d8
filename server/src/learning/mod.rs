//! What calls learn from measured run times: their own, stored ones, those of kernels of the same structure, and those of the same
//! graph on other targets. What is learned predicts the run times of configurations in place of the model's scores.

mod evaluator;
mod learn;
mod lesson;
mod measured;
mod other_targets;
mod pool;
mod predict;
mod reporters;
mod sources;

pub(crate) use evaluator::{Evaluator, PredictedBatch, ScoredConfigs};
pub(crate) use learn::{Learner, Learning, WantedMeasurements};
pub(crate) use lesson::{Lesson, point_bytes};
pub(crate) use other_targets::{MAX_OTHER_TARGETS, OtherTargets, TargetSource};
pub(crate) use predict::{Expectation, Predictor, Scores, points};
pub(crate) use reporters::ReporterShare;
