use std::sync::Arc;

use hlorank_graph::{SegmentedGraph, Task};

use super::{
    ReporterShare,
    measured::MeasuredPoints,
    other_targets::TargetSource,
    predict::{Expectation, Predictor},
    reporters::reporter_shares,
};
use crate::{
    adaptation::{AdaptedCache, AdaptedModel, Basis, MAX_SIZE, Point, Pool, PoolBasis, Prior},
    call::MAX_LEARNED,
    graphs::Warning,
    memory::Held,
    model::ExpectedTau,
    statistics::mean,
};

/// What a call learned from measurements.
pub(crate) struct Lesson {
    fit: Fit,
    /// What was known before.
    evidence: Evidence,
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
    /// What other targets taught, if the call asked for them.
    pub(crate) sources: Vec<TargetSource>,
    /// What takes the place of the model's scores, if other kernels or targets say something.
    pub(crate) expectation: Option<Expectation>,
    /// Whose measurements it rests on.
    pub(crate) reporters: Arc<Vec<ReporterShare>>,
}

/// What a call learns from, beside its measurements.
pub(super) struct Evidence {
    pub(super) target: String,
    /// What kernels of the same structure say, if the call asked for it.
    pub(super) pooled: Option<PoolBasis>,
    /// What other targets taught.
    pub(super) sources: Vec<TargetSource>,
    /// What takes the place of scores.
    pub(super) expectation: Option<Expectation>,
    /// What was unusual.
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
    /// Whose measurements they are.
    reporters: Arc<Vec<ReporterShare>>,
}

/// What other kernels of one structure say.
pub(super) struct KernelPool {
    /// `None` if they predict each other no better than the model does.
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) basis: PoolBasis,
}

impl Evidence {
    /// What is expected of run times before the graph is measured, given what is expected by the model's scores.
    pub(super) fn prior(&self, of_scores: Prior) -> Prior {
        let expectation = self.expectation.as_ref();
        expectation.map_or(of_scores, |expectation| expectation.prior(of_scores))
    }
}

impl Fit {
    /// Warns if what was measured reverses the order of what was expected.
    fn contradiction(&self) -> Option<Warning> {
        let basis = self.adapted.as_ref()?.basis();
        let message = format!(
            "the measured times reverse the order of the scores (tau {:.2} over {} configurations), so predictions rest on the \
             measurements alone; check that the model is for this target and that the target is named right",
            basis.score_tau, basis.learned
        );
        basis.contradicts.then_some(Warning {
            reason: "MODEL_CONTRADICTED",
            message,
        })
    }
}

/// Deviation of the tau on a further target from what sources say of each other, in 68 choices of two or three of 17 measured spaces.
const BETWEEN_TARGETS: f64 = 0.15;

/// Bytes of a point beside what it has for each slot: its score, where its properties are, at most 64 coordinates in three
/// tables, and its places in sorted lists.
const POINT_BYTES: usize = 2 << 10;

/// Bytes of a point for each slot: the orders of its tensors.
const ORDER_BYTES: usize = 3 * size_of::<u32>();

/// Bytes of a measured configuration for each slot beside its point: for each of three tensors an entry of the table of those that
/// have an order, which is a list of its own if no other has it, an entry of what orders add, and its parts in two tables.
const SLOT_BYTES: usize = 3 * (128 + 32 + 2 * size_of::<usize>());

impl Lesson {
    /// What these measurements say.
    pub(super) fn of(mut evidence: Evidence, fit: Fit, held: Held) -> Self {
        evidence.warnings.extend(fit.contradiction());
        Self {
            fit,
            evidence,
            _held: Some(held),
        }
    }

    /// Nothing was measured on the target.
    pub(super) fn nothing(evidence: Evidence) -> Self {
        Self {
            fit: Fit::default(),
            evidence,
            _held: None,
        }
    }

    /// What the measurements say of predictions; `None` if they teach nothing.
    pub(crate) fn basis(&self) -> Option<Basis> {
        let adapted = self.fit.adapted.as_ref();
        adapted.map(|adapted| adapted.basis())
    }

    /// Whether something has replaced the order of the model's scores.
    pub(crate) fn replaces_order(&self) -> bool {
        self.fit.adapted.is_some() || self.evidence.expectation.is_some()
    }

    /// What is expected of a ranking by what other targets say: as much as they say of each other.
    pub(crate) fn expected_by_sources(&self) -> Option<ExpectedTau> {
        let used = self.evidence.sources.iter();
        let used = used.filter(|source| source.basis.refusal.is_none());
        let agreements: Vec<f64> = used.map(|source| source.basis.agreement).collect();
        // A single source has no other to be compared with.
        (agreements.len() > 1).then(|| ExpectedTau {
            tau: mean(&agreements),
            deviation: BETWEEN_TARGETS,
        })
    }

    /// What it rests on.
    pub(crate) fn adaptation(&self) -> Adaptation {
        Adaptation {
            target: self.evidence.target.clone(),
            measured: self.fit.measured,
            stored: self.fit.stored,
            basis: self.basis(),
            pool: self.evidence.pooled,
            sources: self.evidence.sources.clone(),
            expectation: self.evidence.expectation.clone(),
            reporters: Arc::clone(&self.fit.reporters),
        }
    }

    /// What predicts run times; `None` if the model's scores do.
    pub(crate) fn predictor(&self) -> Option<Predictor> {
        let expectation = self.evidence.expectation.clone();
        let adapted = self.fit.adapted.clone();
        let says_something = expectation.is_some() || adapted.is_some();
        says_something.then_some(Predictor {
            expectation,
            adapted,
            measured: self.points(),
        })
    }

    /// The configurations that were measured or failed.
    pub(crate) fn points(&self) -> Arc<Vec<Point>> {
        Arc::clone(&self.fit.points)
    }

    /// What was unusual.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.evidence.warnings
    }
}

/// Bytes of a point of a graph.
pub(crate) fn point_bytes(graph: &SegmentedGraph) -> usize {
    POINT_BYTES + compared_slots(graph) * ORDER_BYTES
}

/// Bytes that learning takes: about eight matrices, and what the measured configurations have in each slot.
pub(super) fn learning_bytes(measurements: usize, graph: &SegmentedGraph) -> usize {
    let size = measurements.min(MAX_SIZE);
    let measured = point_bytes(graph) + compared_slots(graph) * SLOT_BYTES;
    8 * size_of::<f64>() * size * size + measurements * measured
}

/// Number of slots of which a point has orders.
fn compared_slots(graph: &SegmentedGraph) -> usize {
    match graph.task {
        // The columns of all nodes stay in their batch.
        Task::FeatureSet => 0,
        Task::Tile | Task::Layout | Task::Fusion => graph.slots(),
    }
}

/// Learns from measured configurations.
pub(super) fn learn(cache: &AdaptedCache, prior: Prior, measured: MeasuredPoints) -> Fit {
    let measurements = measured.measurements();
    Fit {
        measured: measurements.measured(),
        stored: measured.configs.stored(),
        adapted: cache.learn(prior, measurements.at_most(MAX_LEARNED)),
        reporters: Arc::new(reporter_shares(&measured)),
        points: Arc::new(measured.points),
    }
}
