//! What calls learn from measured run times: their own, stored ones, and related lists of them, of other instances, of kernels of the
//! same structure or of the same graph on other targets. What is learned predicts the run times of configurations in place of the model's scores.
//!
//! [`Learning`] reads what a call wants to learn from, on the compute threads; [`Lesson`] is what it learned, and describes what an
//! answer rests on; [`Evaluator`] scores configurations by it.

mod evaluator;
mod instance_models;
mod learn;
mod lesson;
mod lesson_cache;
mod measured;
mod predict;
mod related;

pub(crate) use evaluator::{Evaluator, PredictedBatch, ScoredConfigs};
pub(crate) use learn::{Learner, Learning, OtherTargets, WantedMeasurements};
pub(crate) use lesson::{Lesson, RelatedSource, point_bytes};
pub(crate) use measured::ReporterShare;
pub(crate) use predict::{Predictor, Scores, points};
pub(crate) use related::MAX_OTHER_TARGETS;
