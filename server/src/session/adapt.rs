//! Learns from the measurements of a call, and predicts run times of its configurations.

use std::{ops::Range, sync::Arc};

use hlorank_graph::{Configurations, Distinct};

use super::{SessionError, measurements::SentMeasurements};
use crate::{
    adaptation::{Adapted, Basis, Measurement, Measurements, Point, Prediction, Prior},
    compute::{Class, ComputePool},
    memory::Held,
    outcome::{Evaluation, Sums},
};

/// What a call's measurements taught.
pub(super) struct Learned {
    pub(super) target: String,
    /// Number of distinct configurations that have a time.
    pub(super) measured: usize,
    /// `None` if the measurements say nothing.
    pub(super) adapted: Option<Arc<Adapted>>,
    /// The memory that it takes.
    _held: Option<Held>,
}

/// What an adapted answer rests on.
pub(crate) struct Adaptation {
    pub(crate) target: String,
    pub(crate) measured: usize,
    /// `None` if nothing was learned.
    pub(crate) basis: Option<Basis>,
}

/// The run times of a batch that are being predicted.
struct Batch {
    adapted: Arc<Adapted>,
    configurations: Arc<Configurations>,
    scores: Vec<f32>,
    sums: Option<Sums>,
}

/// Number of configurations that a worker predicts before it is another call's turn.
const AT_ONCE: usize = 128;

impl Learned {
    pub(super) fn adaptation(&self) -> Adaptation {
        let basis = self.adapted.as_ref().map(|adapted| adapted.basis());
        Adaptation { target: self.target.clone(), measured: self.measured, basis }
    }

    /// Nothing was measured.
    pub(super) fn nothing(target: String) -> Self {
        Self { target, measured: 0, adapted: None, _held: None }
    }
}

/// Bytes that learning from this many measurements takes: about eight matrices over them.
pub(super) fn learning_bytes(measurements: usize) -> usize {
    8 * size_of::<f64>() * measurements * measurements
}

/// Learns from measured configurations and their evaluation.
pub(super) fn learn(
    sent: SentMeasurements,
    configurations: &Configurations,
    evaluation: &Evaluation,
    held: Held,
) -> Learned {
    let all: Vec<usize> = (0..configurations.len()).collect();
    let points = points(configurations, &all, &evaluation.scores, evaluation.sums.as_ref());
    let measured = points.into_iter().zip(&sent.outcomes).map(|(point, outcome)| Measurement {
        point,
        seconds: outcome.seconds,
        repeats: outcome.repeats,
    });
    let measurements = Measurements::of(measured.collect());
    let measured = measurements.measured();
    let adapted = Adapted::of(Prior::of(configurations.task()), measurements).map(Arc::new);
    Learned { target: sent.target, measured, adapted, _held: Some(held) }
}

/// Predicts the run times of evaluated configurations. Returns the mean and the deviation of ln(seconds) of each.
pub(super) async fn predict(
    pool: &ComputePool,
    adapted: &Arc<Adapted>,
    configurations: Arc<Configurations>,
    evaluation: &mut Evaluation,
    class: Class,
) -> Result<Vec<f32>, SessionError> {
    let (scores, sums) = (std::mem::take(&mut evaluation.scores), evaluation.sums.take());
    let batch = Arc::new(Batch { adapted: Arc::clone(adapted), configurations, scores, sums });
    let distinct = {
        let batch = Arc::clone(&batch);
        Arc::new(pool.run(class, move |_| batch.configurations.batch().distinct()).await?.value)
    };
    let mut predictions = Vec::with_capacity(distinct.first.len());
    for start in (0..distinct.first.len()).step_by(AT_ONCE) {
        let (batch, distinct) = (Arc::clone(&batch), Arc::clone(&distinct));
        let range = start..distinct.first.len().min(start + AT_ONCE);
        predictions.extend(pool.run(class, move |_| batch.predict(&distinct, range)).await?.value);
    }
    let values = |value: fn(&Prediction) -> f64| -> Vec<f32> {
        distinct.fan_out(&predictions.iter().map(|each| finite(value(each))).collect::<Vec<f32>>())
    };
    evaluation.scores = values(|prediction| prediction.log_seconds);
    Ok(values(|prediction| prediction.deviation))
}

impl Batch {
    fn predict(&self, distinct: &Distinct, range: Range<usize>) -> Vec<Prediction> {
        let points = points(&self.configurations, &distinct.first[range], &self.scores, self.sums.as_ref());
        points.iter().map(|point| self.adapted.predict(point)).collect()
    }
}

/// The points of the configurations of these numbers.
fn points(
    configurations: &Configurations,
    numbers: &[usize],
    scores: &[f32],
    sums: Option<&Sums>,
) -> Vec<Point> {
    let input = configurations.batch().input(numbers);
    let sum = |&number: &usize| sums.map_or(&[][..], |sums| sums.of(number));
    Point::of_input(&input, numbers.iter().map(|&number| scores[number]), numbers.iter().map(sum))
}

/// Scores are finite, so a configuration that failed has the largest.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn finite(value: f64) -> f32 {
    (value as f32).min(f32::MAX)
}
