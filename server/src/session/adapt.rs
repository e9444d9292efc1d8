//! Learns from the measurements of a call, and predicts run times of its configurations.

use std::sync::Arc;

use hlorank_graph::{Configurations, SegmentedGraph, pace};

use super::{
    Client, Contradiction, SessionError,
    judge::{Judged, measurements},
    measurements::MAX_LEARNED,
    stored::Measured,
};
use crate::{
    adaptation::{
        Adapted, AdaptedCache, Basis, LayoutMeans, MAX_SIZE, Point, Pool, PoolBasis, Prediction,
        Prior,
    },
    compute::{Class, ComputePool},
    engine::{BatchPart, Engine, Terms, rank},
    memory::Held,
    model::{Model, ScoreUnit},
    outcome::Evaluation,
    store::Reporter,
};

/// What a call's measurements taught.
pub(super) struct Learned {
    pub(super) target: String,
    /// Number of distinct configurations that have a time.
    pub(super) measured: usize,
    /// Number of stored measurements that teach.
    stored: usize,
    /// What comparing their reporters told.
    judged: Judged,
    /// `None` if the measurements say nothing.
    adapted: Option<Arc<Adapted>>,
    /// What other kernels taught, if the call asked for it.
    pooled: Option<Pooled>,
    /// The configurations that were measured or failed.
    pub(super) points: Arc<Vec<Point>>,
    /// The memory that it takes.
    _held: Option<Held>,
}

/// What an adapted answer rests on.
pub(crate) struct Adaptation {
    pub(crate) target: String,
    pub(crate) measured: usize,
    /// Number of stored measurements that it rests on.
    pub(crate) stored: usize,
    /// `None` if nothing was learned.
    pub(crate) basis: Option<Basis>,
    /// What a pool of other kernels rests on, if the call asked for it.
    pub(crate) pool: Option<PoolBasis>,
    /// The reporters that contradict others, without those names that the client may not know.
    pub(crate) contradictions: Vec<Contradiction>,
}

/// What a call is about to learn, beside its measurements.
pub(super) struct Lesson {
    pub(super) target: String,
    pub(super) pooled: Option<Pooled>,
    pub(super) judged: Judged,
    pub(super) held: Held,
}

/// What other kernels of one structure taught.
pub(super) struct Pooled {
    /// `None` if they predict each other no better than the model does.
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) basis: PoolBasis,
}

/// What predicts run times in place of the model's scores.
#[derive(Clone)]
pub(super) struct Taught {
    /// What takes the place of scores, if other kernels taught something.
    pub(super) pool: Option<Arc<Pool>>,
    /// `None` if no measurements of the graph itself taught: the pool then predicts ln(seconds) up to a common number.
    pub(super) adapted: Option<Arc<Adapted>>,
}

/// The model's scores of some configurations.
pub(super) struct Scores<'a> {
    pub(super) values: &'a [f32],
    pub(super) unit: ScoreUnit,
    /// What takes their place, if other kernels taught something.
    pub(super) pool: Option<&'a Pool>,
}

/// The run times of a batch that are being predicted.
struct Batch {
    taught: Taught,
    configurations: Arc<Configurations>,
    scores: Vec<f32>,
    unit: ScoreUnit,
}

/// Number of configurations that a worker predicts before it is another call's turn.
const AT_ONCE: usize = 128;

/// Bytes of a measured configuration for each slot: the orders of its tensors in ten tables.
const SLOT_BYTES: usize = 10 * 3 * size_of::<u64>();

/// The same for means alone, which are sums over a table.
const MEANS_AT_ONCE: usize = 8_192;

impl Learned {
    /// What it rests on, as far as the client may know.
    pub(super) fn adaptation(&self, client: &Client) -> Adaptation {
        let basis = self.adapted.as_ref().map(|adapted| adapted.basis());
        let basis = basis.map(|basis| Basis {
            trust: basis.trust * self.judged.undisputed(),
            ..basis
        });
        let mut contradictions = self.judged.contradictions.clone();
        for contradiction in &mut contradictions {
            let shown = client.shown(contradiction.reporter.as_ref());
            contradiction.reporter = Reporter::named(shown);
        }
        Adaptation {
            target: self.target.clone(),
            measured: self.measured,
            stored: self.stored,
            basis,
            pool: self.pooled.as_ref().map(|pooled| pooled.basis),
            contradictions,
        }
    }

    /// What predicts run times; `None` if the model's scores do.
    pub(super) fn taught(&self) -> Option<Taught> {
        let pool = self.pooled.as_ref().and_then(|pooled| pooled.pool.clone());
        let taught = Taught {
            pool,
            adapted: self.adapted.clone(),
        };
        (taught.pool.is_some() || taught.adapted.is_some()).then_some(taught)
    }

    /// Nothing was measured.
    pub(super) fn nothing(target: String, pooled: Option<Pooled>) -> Self {
        Self {
            target,
            measured: 0,
            stored: 0,
            judged: Judged::default(),
            adapted: None,
            pooled,
            points: Arc::default(),
            _held: None,
        }
    }
}

/// Bytes that learning takes: about eight matrices, and what the measured configurations have in each slot.
pub(super) fn learning_bytes(measurements: usize, slots: usize) -> usize {
    let size = measurements.min(MAX_SIZE);
    8 * size_of::<f64>() * size * size
        + measurements
            .saturating_mul(slots)
            .saturating_mul(SLOT_BYTES)
}

/// Returns the point of each measured configuration, given its score.
pub(super) fn points_of_measured(
    configurations: &Configurations,
    scores: &[f32],
    (unit, pool): (ScoreUnit, Option<&Pool>),
) -> Vec<Point> {
    let all: Vec<usize> = (0..configurations.len()).collect();
    let scores = Scores {
        values: scores,
        unit,
        pool,
    };
    pace::in_steps(1, all.chunks(AT_ONCE))
        .flat_map(|some| points(configurations, some, &scores))
        .collect()
}

/// What is expected before anything is learned from measurements.
pub(super) fn prior_of(measured: &Measured, unit: ScoreUnit, pooled: Option<&Pooled>) -> Prior {
    let prior = Prior::of(measured.configurations.task(), unit);
    let has_pool = pooled.is_some_and(|pooled| pooled.pool.is_some());
    if has_pool { prior.pooled() } else { prior }
}

/// Learns from measured configurations and the point of each.
pub(super) fn learn(
    cache: &AdaptedCache,
    prior: Prior,
    (measured, points): (&Measured, Arc<Vec<Point>>),
    lesson: Lesson,
) -> Learned {
    let Lesson {
        target,
        pooled,
        judged,
        held,
    } = lesson;
    let kept = measured.kept(|reporter| judged.keeps(reporter));
    let measurements = measurements(measured, &points, &kept);
    Learned {
        target,
        measured: measurements.measured(),
        stored: kept
            .iter()
            .filter(|&&number| !measured.is_sent(number))
            .count(),
        judged,
        adapted: cache.learn(prior, measurements.at_most(MAX_LEARNED)),
        pooled,
        points: Arc::new(kept.iter().map(|&number| points[number].clone()).collect()),
        _held: Some(held),
    }
}

/// Configurations that were scored.
pub(super) struct Scored {
    pub(super) evaluation: Evaluation,
    /// The deviations of predicted ln(seconds), of which those of the best are set; empty if nothing was learned.
    pub(super) deviations: Vec<f32>,
}

/// Scores configurations. If something was learned, their scores are predicted ln(seconds), and the best `top_k` get deviations
/// unless only other kernels taught.
pub(super) async fn score(
    engine: &Engine,
    (model, graph): (&Model, &Arc<SegmentedGraph>),
    part: BatchPart,
    terms: Terms,
    (taught, top_k): (Option<&Taught>, u32),
) -> Result<Scored, SessionError> {
    let Some(taught) = taught else {
        let evaluation = engine.score(model, graph, part, terms).await?;
        return Ok(Scored {
            evaluation,
            deviations: Vec::new(),
        });
    };
    let configurations = match part.whole() {
        Some(batch) => Arc::clone(batch),
        None => {
            let select = move |_| Arc::new(part.into_configurations());
            engine.pool().run(terms.class, select).await?.value
        }
    };
    let scored = Arc::clone(&configurations);
    let mut evaluation = engine.score(model, graph, scored, terms).await?;
    let all = (configurations, model.manifest().unit());
    let terms = (terms.class, top_k);
    let deviations = predict(engine.pool(), taught, all, &mut evaluation, terms).await?;
    Ok(Scored {
        evaluation,
        deviations,
    })
}

/// Replaces the scores of evaluated configurations by the means of their ln(seconds). Returns the deviations, of which
/// those of the best `top_k` are set (0 for all).
async fn predict(
    pool: &ComputePool,
    taught: &Taught,
    (configurations, unit): (Arc<Configurations>, ScoreUnit),
    evaluation: &mut Evaluation,
    (class, top_k): (Class, u32),
) -> Result<Vec<f32>, SessionError> {
    let scores = std::mem::take(&mut evaluation.scores);
    let batch = Arc::new(Batch {
        taught: taught.clone(),
        configurations,
        scores,
        unit,
    });
    evaluation.scores = batch.means(pool, class).await?;
    if taught.adapted.is_none() {
        return Ok(Vec::new());
    }
    let best = rank(&evaluation.scores, top_k as usize);
    let mut deviations = vec![0.0; evaluation.scores.len()];
    for some in best.chunks(AT_ONCE) {
        let numbers: Vec<usize> = some.iter().map(|&number| number as usize).collect();
        let predictions = batch.predict(pool, class, numbers.clone()).await?;
        for (number, prediction) in numbers.into_iter().zip(predictions) {
            deviations[number] = finite(prediction.deviation);
        }
    }
    Ok(deviations)
}

/// Returns the means of ln(seconds) of configurations, given the model's scores.
pub(super) async fn predicted_means(
    pool: &ComputePool,
    taught: &Taught,
    (configurations, scores, unit): (Arc<Configurations>, Vec<f32>, ScoreUnit),
    class: Class,
) -> Result<Vec<f32>, SessionError> {
    let batch = Arc::new(Batch {
        taught: taught.clone(),
        configurations,
        scores,
        unit,
    });
    batch.means(pool, class).await
}

impl Batch {
    /// The mean of every configuration.
    async fn means(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
    ) -> Result<Vec<f32>, SessionError> {
        let batch = Arc::clone(self);
        match pool.run(class, move |_| batch.layout_means()).await?.value {
            Some(means) => self.means_of_layouts(pool, class, Arc::new(means)).await,
            None => self.means_of_distinct(pool, class).await,
        }
    }

    fn layout_means(&self) -> Option<LayoutMeans> {
        match &*self.configurations {
            Configurations::Layout(batch) => self.taught.adapted.as_ref()?.layout_means(batch),
            Configurations::Tile(_) | Configurations::Fusion(_) | Configurations::FeatureSet(_) => {
                None
            }
        }
    }

    async fn means_of_layouts(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
        means: Arc<LayoutMeans>,
    ) -> Result<Vec<f32>, SessionError> {
        let mut all = Vec::with_capacity(self.scores.len());
        for start in (0..self.scores.len()).step_by(MEANS_AT_ONCE) {
            let (batch, means) = (Arc::clone(self), Arc::clone(&means));
            all.extend(
                pool.run(class, move |_| batch.some_layouts(&means, start))
                    .await?
                    .value,
            );
        }
        Ok(all)
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

    async fn means_of_distinct(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
    ) -> Result<Vec<f32>, SessionError> {
        let batch = Arc::clone(self);
        let distinct = pool
            .run(class, move |_| batch.configurations.batch().distinct())
            .await?
            .value;
        let mut means = Vec::with_capacity(distinct.first.len());
        for some in distinct.first.chunks(AT_ONCE) {
            let predictions = self.predict(pool, class, some.to_vec()).await?;
            means.extend(predictions.iter().map(|each| finite(each.log_seconds)));
        }
        Ok(distinct.fan_out(&means))
    }

    /// Predicts the run times of configurations.
    async fn predict(
        self: &Arc<Self>,
        pool: &ComputePool,
        class: Class,
        numbers: Vec<usize>,
    ) -> Result<Vec<Prediction>, SessionError> {
        let batch = Arc::clone(self);
        let predict = move || {
            let pool = batch.taught.pool.as_deref();
            let scores = Scores {
                values: &batch.scores,
                unit: batch.unit,
                pool,
            };
            let points = points(&batch.configurations, &numbers, &scores);
            pace::in_steps(1, &points)
                .map(|point| batch.taught.predict(point))
                .collect()
        };
        Ok(pool.run(class, move |_| predict()).await?.value)
    }
}

impl Taught {
    /// Predicts the run time of a configuration; without deviation if only other kernels taught.
    fn predict(&self, point: &Point) -> Prediction {
        let by_pool = || Prediction {
            log_seconds: point.score,
            deviation: 0.0,
        };
        self.adapted
            .as_ref()
            .map_or_else(by_pool, |adapted| adapted.predict(point))
    }
}

/// The points of the configurations of these numbers.
pub(super) fn points(
    configurations: &Configurations,
    numbers: &[usize],
    scores: &Scores<'_>,
) -> Vec<Point> {
    let Scores { values, unit, pool } = *scores;
    match configurations {
        Configurations::Fusion(batch) => {
            let point = |&number: &usize| Point::of_fusion(batch, number, values[number]);
            numbers.iter().map(point).collect()
        }
        Configurations::FeatureSet(batch) => {
            let point =
                |&number: &usize| Point::of_node_features(batch, number, (values[number], unit));
            numbers.iter().map(point).collect()
        }
        Configurations::Layout(_) | Configurations::Tile(_) => {
            let input = configurations.batch().input(numbers);
            let mut points = Point::of_input(&input, numbers.iter().map(|&number| values[number]));
            if let Some(pool) = pool {
                for point in &mut points {
                    point.score = pool.score(point);
                }
            }
            points
        }
    }
}

/// Scores are finite, so a configuration that failed has the largest.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn finite(value: f64) -> f32 {
    (value as f32).min(f32::MAX)
}
