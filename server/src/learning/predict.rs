//! Predicts run times of configurations from the model's scores and from what was learned.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hlorank_adaptation::{
    AdaptedModel, Expectation, LayoutMeans, Point, PredictedList, statistics::Normal,
};
use hlorank_graph::{Configurations, pace};

use crate::{
    call::CallError,
    compute::{Class, ComputePool},
    engine::rank,
    model::ScoreUnit,
};

/// What predicts run times in place of the model's scores.
#[derive(Clone)]
pub(crate) struct Predictor {
    /// What takes the place of scores, if other kernels or targets say something.
    pub(crate) expectation: Option<Expectation>,
    /// `None` if no measurements of the graph on the target say something: the expectation then predicts ln(seconds) up to a
    /// common number.
    pub(crate) adapted: Option<Arc<AdaptedModel>>,
    /// The configurations that were measured or failed.
    pub(crate) measured: Arc<Vec<Point>>,
}

/// The model's scores of some configurations.
pub(crate) struct Scores<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) unit: ScoreUnit,
    /// What takes their place, if other kernels or targets say something.
    pub(crate) expectation: Option<&'a Expectation>,
}

/// What a model says of a batch, whose run times are predicted.
pub(super) struct ModelScores {
    pub(super) predictor: Predictor,
    pub(super) configurations: Arc<Configurations>,
    /// The model's scores.
    pub(super) scores: Vec<f32>,
    pub(super) unit: ScoreUnit,
}

/// Number of configurations of a batch that stand for the others.
const SAMPLE: usize = 64;

/// Number of configurations that a worker predicts before it is another call's turn.
const AT_ONCE: usize = 128;

/// The same for means alone, which are sums over a table.
const MEANS_AT_ONCE: usize = 8_192;

/// Returns the point of each measured configuration, given its score.
pub(super) fn points_of_measured(
    configurations: &Arc<Configurations>,
    scores: &[f32],
    unit: ScoreUnit,
) -> Vec<Point> {
    let all: Vec<usize> = (0..configurations.len()).collect();
    let scores = Scores {
        values: scores,
        unit,
        expectation: None,
    };
    pace::in_steps(1, all.chunks(AT_ONCE))
        .flat_map(|some| points(configurations, some, &scores))
        .collect()
}

impl ModelScores {
    /// The mean of ln(seconds) of every configuration.
    pub(super) async fn means(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
    ) -> Result<Vec<f32>, CallError> {
        let batch = Arc::clone(self);
        // The mean of a layout is a sum over tables, which is cheaper than to look for equal rows.
        if let Some(means) = pool.run(class, move |_| batch.layout_means()).await?.value {
            let means = Arc::new(means);
            let mut all = Vec::with_capacity(self.scores.len());
            for start in (0..self.scores.len()).step_by(MEANS_AT_ONCE) {
                let (batch, means) = (Arc::clone(self), Arc::clone(&means));
                let some = pool.run(class, move |_| batch.some_layouts(&means, start));
                all.extend(some.await?.value);
            }
            return Ok(all);
        }
        // Equal configurations have equal means, and a mean takes time with the number of
        // measurements.
        let batch = Arc::clone(self);
        let distinct = move |_| batch.configurations.batch().distinct();
        let distinct = pool.run(class, distinct).await?.value;
        let mean = |predictor: &Predictor, point: &Point| finite(predictor.predict_mean(point));
        let chunks = distinct.first.chunks(AT_ONCE);
        let parts = chunks.map(|some| self.of_points(pool, class, some.to_vec(), mean));
        let parts: Vec<_> = parts.collect();
        // Every worker has something to do, and is another call's turn after each part.
        let parts = stream::iter(parts).buffered(pool.workers());
        let means: Vec<Vec<f32>> = parts.try_collect().await?;
        Ok(distinct.fan_out(&means.concat()))
    }

    fn layout_means(&self) -> Option<LayoutMeans> {
        match (&*self.configurations, &self.predictor.expectation) {
            (Configurations::Layout(batch), None) => {
                self.predictor.adapted.as_ref()?.layout_means(batch)
            }
            // What other targets say is no sum over tensors.
            _ => None,
        }
    }

    fn some_layouts(&self, means: &LayoutMeans, start: usize) -> Vec<f32> {
        let Configurations::Layout(batch) = &*self.configurations else {
            return Vec::new();
        };
        let scores = self.scores[start..].iter().take(MEANS_AT_ONCE).enumerate();
        scores
            .map(|(place, &score)| finite(means.mean(score.into(), batch.row(start + place))))
            .collect()
    }

    /// Predicts something of configurations by their points.
    async fn of_points<T: Send + 'static>(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
        numbers: Vec<usize>,
        predict: impl Fn(&Predictor, &Point) -> T + Send + 'static,
    ) -> Result<Vec<T>, CallError> {
        let batch = Arc::clone(self);
        let of_each = move |_| {
            let scores = Scores {
                values: &batch.scores,
                unit: batch.unit,
                expectation: batch.predictor.expectation.as_ref(),
            };
            let points = points(&batch.configurations, &numbers, &scores);
            pace::in_steps(4, &points)
                .map(|point| predict(&batch.predictor, point))
                .collect()
        };
        Ok(pool.run(class, of_each).await?.value)
    }

    /// What is predicted of some configurations that lie evenly over the batch and were not measured; nothing if nothing was learned
    /// of the graph itself.
    pub(super) async fn sample(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
    ) -> Result<PredictedList, CallError> {
        if self.predictor.adapted.is_none() {
            return Ok(PredictedList::default());
        }
        // Lists often have neighbours that are alike, so that the first of them would not stand for all.
        let step = self.scores.len().div_ceil(SAMPLE).max(1);
        let numbers = (0..self.scores.len()).step_by(step).collect();
        let expected = self.of_points(pool, class, numbers, Predictor::expect);
        let expected = expected.await?.into_iter().flatten();
        Ok(PredictedList::new(expected.collect()))
    }

    /// The deviations of ln(seconds), of which those of the `top_k` with the lowest means are set (0 for all).
    pub(super) async fn deviations(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
        means: &[f32],
        top_k: u32,
    ) -> Result<Vec<f32>, CallError> {
        // A deviation takes time with the square of the number of measurements, so that those that
        // the answer does not show stay 0.
        let best = rank(means, top_k as usize);
        let mut deviations = vec![0.0; means.len()];
        for some in best.chunks(AT_ONCE) {
            let numbers: Vec<usize> = some.iter().map(|&number| number as usize).collect();
            let deviation =
                |predictor: &Predictor, point: &Point| finite(predictor.deviation(point));
            let predicted = self.of_points(pool, class, numbers.clone(), deviation);
            for (number, deviation) in numbers.into_iter().zip(predicted.await?) {
                deviations[number] = deviation;
            }
        }
        Ok(deviations)
    }
}

impl Predictor {
    /// The deviation of the predicted ln(seconds); 0 if only other kernels or targets say something.
    fn deviation(&self, point: &Point) -> f64 {
        let adapted = self.adapted.as_ref();
        adapted.map_or(0.0, |adapted| adapted.predict(point).deviation)
    }

    /// What is expected of a configuration, unless it was measured or nothing was learned of the graph itself.
    fn expect(&self, point: &Point) -> Option<Normal> {
        let mut measured = self.measured.iter();
        let is_measured = measured.any(|measured| measured.is_same_configuration(point));
        let adapted = self.adapted.as_ref().filter(|_| !is_measured)?;
        Some(adapted.expect(point))
    }

    /// The predicted ln(seconds) of a configuration.
    fn predict_mean(&self, point: &Point) -> f64 {
        let adapted = self.adapted.as_ref();
        adapted.map_or(point.score, |adapted| adapted.predict_mean(point))
    }
}

/// The points of the configurations of these numbers.
pub(crate) fn points(
    configurations: &Arc<Configurations>,
    numbers: &[usize],
    scores: &Scores<'_>,
) -> Vec<Point> {
    let unit = scores.unit;
    let with_score = |&number: &usize| (number, scores.values[number]);
    let pairs = numbers.iter().map(with_score);
    let mut points: Vec<Point> = match &**configurations {
        Configurations::Fusion(batch) => pairs
            .map(|(number, score)| Point::of_fusion(batch, number, score))
            .collect(),
        Configurations::FeatureSet(_) => pairs
            .map(|(number, score)| Point::of_node_features(configurations, number, score, unit))
            .collect(),
        Configurations::Layout(_) | Configurations::Tile(_) => {
            let input = configurations.batch().input(numbers);
            Point::of_input(&input, pairs.map(|(_, score)| score))
        }
    };
    // The expectation takes all points at once, because trees go through them tree by tree.
    if let Some(expectation) = scores.expectation {
        expectation.replace_scores(&mut points);
    }
    points
}

/// Scores are finite, so a configuration that failed has the largest.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn finite(value: f64) -> f32 {
    (value as f32).min(f32::MAX)
}
