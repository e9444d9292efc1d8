use std::sync::Arc;

use super::{
    Contradiction,
    judge::{Judgement, measurements},
    measured::MeasuredConfigs,
    predict::Predictor,
};
use crate::{
    adaptation::{AdaptedCache, AdaptedModel, Basis, MAX_SIZE, Point, Pool, PoolBasis, Prior},
    call::{Client, MAX_LEARNED},
    graphs::Warning,
    memory::Held,
    model::ScoreUnit,
    store::Reporter,
};

/// What a call learned from measurements.
pub(crate) struct Lesson {
    target: String,
    fit: Fit,
    /// What comparing the reporters of the measurements showed.
    judgement: Judgement,
    /// What kernels of the same structure say, if the call asked for it.
    pooled: Option<KernelPool>,
    /// What was unusual.
    warnings: Vec<Warning>,
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

/// What a call learns from, beside its measurements.
pub(super) struct Evidence {
    pub(super) target: String,
    pub(super) pooled: Option<KernelPool>,
    pub(super) warnings: Vec<Warning>,
}

/// What measurements of a graph say about it.
#[derive(Default)]
pub(super) struct Fit {
    /// Number of distinct configurations that have a time.
    measured: usize,
    /// Number of stored measurements that are learned from.
    stored: usize,
    /// `None` if the measurements say nothing.
    adapted: Option<Arc<AdaptedModel>>,
    /// The configurations that were measured or failed.
    points: Arc<Vec<Point>>,
}

/// What other kernels of one structure say.
pub(super) struct KernelPool {
    /// `None` if they predict each other no better than the model does.
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) basis: PoolBasis,
}

/// Bytes of a measured configuration for each slot: the orders of its tensors in ten tables.
const SLOT_BYTES: usize = 10 * 3 * size_of::<u64>();

impl Lesson {
    /// What these measurements say.
    pub(super) fn of(evidence: Evidence, judgement: Judgement, fit: Fit, held: Held) -> Self {
        Self {
            target: evidence.target,
            fit,
            judgement,
            pooled: evidence.pooled,
            warnings: evidence.warnings,
            _held: Some(held),
        }
    }

    /// Nothing was measured.
    pub(super) fn nothing(
        target: String,
        pooled: Option<KernelPool>,
        warnings: Vec<Warning>,
    ) -> Self {
        Self {
            target,
            fit: Fit::default(),
            judgement: Judgement::default(),
            pooled,
            warnings,
            _held: None,
        }
    }

    /// What it rests on, as far as the client may know.
    pub(crate) fn adaptation(&self, client: &Client) -> Adaptation {
        let basis = self.fit.adapted.as_ref().map(|adapted| adapted.basis());
        let basis = basis.map(|basis| Basis {
            trust: basis.trust * self.judgement.undisputed(),
            ..basis
        });
        let mut contradictions = self.judgement.contradictions.clone();
        for contradiction in &mut contradictions {
            let shown = client.shown(contradiction.reporter.as_ref());
            contradiction.reporter = Reporter::named(shown);
        }
        Adaptation {
            target: self.target.clone(),
            measured: self.fit.measured,
            stored: self.fit.stored,
            basis,
            pool: self.pooled.as_ref().map(|pooled| pooled.basis),
            contradictions,
        }
    }

    /// What predicts run times; `None` if the model's scores do.
    pub(crate) fn predictor(&self) -> Option<Predictor> {
        let pool = self.pooled.as_ref().and_then(KernelPool::pool);
        let adapted = self.fit.adapted.clone();
        let says_something = pool.is_some() || adapted.is_some();
        says_something.then_some(Predictor { pool, adapted })
    }

    /// The configurations that were measured or failed.
    pub(crate) fn points(&self) -> Arc<Vec<Point>> {
        Arc::clone(&self.fit.points)
    }

    /// What was unusual, for the first who asks.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }
}

impl KernelPool {
    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.clone()
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

/// What is expected before anything is learned from measurements.
pub(super) fn prior_of(
    measured: &MeasuredConfigs,
    unit: ScoreUnit,
    pooled: Option<&KernelPool>,
) -> Prior {
    let prior = Prior::of(measured.configurations.task(), unit);
    let has_pool = pooled.is_some_and(|pooled| pooled.pool.is_some());
    if has_pool { prior.pooled() } else { prior }
}

/// Learns from measured configurations and the point of each. The measurements of reporters that others outvote are left out.
pub(super) fn learn(
    cache: &AdaptedCache,
    prior: Prior,
    measured: &MeasuredConfigs,
    points: &[Point],
    judgement: &Judgement,
) -> Fit {
    let kept = measured.kept(|reporter| judgement.keeps(reporter));
    let measurements = measurements(measured, points, &kept);
    let is_stored = |number: &&usize| !measured.is_sent(**number);
    let kept_points = kept.iter().map(|&number| points[number].clone()).collect();
    Fit {
        measured: measurements.measured(),
        stored: kept.iter().filter(is_stored).count(),
        adapted: cache.learn(prior, measurements.at_most(MAX_LEARNED)),
        points: Arc::new(kept_points),
    }
}
