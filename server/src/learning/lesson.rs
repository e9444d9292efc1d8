use std::{iter::zip, sync::Arc};

use hlorank_graph::{SegmentedGraph, Task};

use super::{
    ReporterShare,
    measured::MeasuredConfigs,
    predict::{Predictor, points_of_measured},
};
use crate::{
    adaptation::{
        AdaptedModel, Basis, Expectation, LessonCache, MAX_SIZE, Measurements, Point, Prior,
        RelatedBasis, StudiedTargets,
    },
    call::MAX_LEARNED,
    graphs::Warning,
    memory::HeldBytes,
    model::{ExpectedTau, ScoreUnit},
    statistics::mean,
};

/// What a call learned from measurements.
#[derive(Default)]
pub(crate) struct Lesson {
    /// What it rests on.
    pub(crate) adaptation: Adaptation,
    /// `None` if the measurements of the graph on the target say nothing.
    adapted: Option<Arc<AdaptedModel>>,
    /// The configurations that were measured or failed.
    pub(crate) points: Arc<Vec<Point>>,
    /// What was unusual.
    pub(crate) warnings: Vec<Warning>,
    /// The memory that it takes.
    held: Option<HeldBytes>,
}

/// What an adapted answer rests on.
#[derive(Clone, Default)]
pub(crate) struct Adaptation {
    pub(crate) target: String,
    /// Number of distinct configurations that have a time.
    pub(crate) measured: usize,
    /// Number of stored measurements that it rests on.
    pub(crate) stored: usize,
    /// `None` if nothing was learned.
    pub(crate) basis: Option<Basis>,
    /// What kernels of the same structure taught, if the call asked for it.
    pub(crate) pool: Option<RelatedBasis>,
    /// The names of other targets and what they taught, if the call asked for them.
    pub(crate) sources: Vec<(String, RelatedBasis)>,
    /// What takes the place of the model's scores, if other kernels or targets say something.
    pub(crate) expectation: Option<Expectation>,
    /// Whose measurements it rests on.
    pub(crate) reporters: Arc<Vec<ReporterShare>>,
}

/// What related lists say, before it is compared with the target's own measurements.
#[derive(Default)]
pub(super) struct RelatedLesson {
    pub(super) kernels: Option<(Option<Expectation>, RelatedBasis)>,
    /// The names of other targets, and what they say.
    pub(super) targets: Option<(Vec<String>, Arc<StudiedTargets>)>,
}

/// What the model says of measured configurations.
pub(super) struct MeasuredScores {
    pub(super) values: Vec<f32>,
    pub(super) unit: ScoreUnit,
    pub(super) prior: Prior,
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
    /// Nothing is learned of a target yet.
    pub(super) fn new(target: String) -> Self {
        Self {
            adaptation: Adaptation {
                target,
                ..Adaptation::default()
            },
            ..Self::default()
        }
    }

    /// Adds what related lists say, given the target's own measurements. Other targets tell more of a graph than other kernels do.
    pub(super) fn relate(&mut self, related: RelatedLesson, own: &Measurements) {
        let adaptation = &mut self.adaptation;
        if let Some((expectation, basis)) = related.kernels {
            adaptation.pool = Some(basis);
            adaptation.expectation = expectation;
        }
        if let Some((names, studied)) = related.targets {
            let (expectation, bases) = studied.given(own);
            adaptation.sources = zip(names, bases).collect();
            adaptation.expectation = expectation.or(adaptation.expectation.take());
        }
    }

    /// Adds what measured configurations say, beside related lists. What these expect takes the place of the points' scores.
    pub(super) fn learn(
        mut self,
        cache: &LessonCache,
        related: RelatedLesson,
        measured: &MeasuredConfigs,
        scores: &MeasuredScores,
        held: HeldBytes,
    ) -> Self {
        let configurations = &measured.configurations;
        let mut points = points_of_measured(configurations, &scores.values, scores.unit);
        self.relate(related, &measured.measurements(&points));
        let adaptation = &mut self.adaptation;
        let mut prior = scores.prior;
        if let Some(expectation) = &adaptation.expectation {
            expectation.replace_scores(&mut points);
            prior = expectation.prior;
        }
        let measurements = measured.measurements(&points);
        adaptation.measured = measurements.measured();
        adaptation.stored = measured.stored();
        adaptation.reporters = Arc::new(measured.reporter_shares(&points));
        self.adapted = cache.learn(prior, measurements.at_most(MAX_LEARNED));
        adaptation.basis = self.adapted.as_ref().map(|adapted| adapted.basis);
        if let Some(basis) = adaptation.basis.filter(|basis| basis.contradicts) {
            let message = format!(
                "the measured times reverse the order of the scores (tau {:.2} over {} configurations), so predictions rest on the \
                 measurements alone; check that the model is for this target and that the target is named right",
                basis.score_tau, basis.learned
            );
            self.warnings.push(Warning {
                reason: "MODEL_CONTRADICTED",
                message,
            });
        }
        self.points = Arc::new(points);
        self.held = Some(held);
        self
    }

    /// Whether something has replaced the order of the model's scores.
    pub(crate) fn replaces_order(&self) -> bool {
        self.adapted.is_some() || self.adaptation.expectation.is_some()
    }

    /// What is expected of a ranking by what other targets say: as much as they say of each other.
    pub(crate) fn expected_by_sources(&self) -> Option<ExpectedTau> {
        let used = self.adaptation.sources.iter();
        let used = used.filter(|(_, basis)| basis.refusal.is_none());
        let agreements: Vec<f64> = used.map(|(_, basis)| basis.agreement).collect();
        // A single source has no other to be compared with.
        (agreements.len() > 1).then(|| ExpectedTau {
            tau: mean(&agreements),
            deviation: BETWEEN_TARGETS,
        })
    }

    /// What predicts run times; `None` if the model's scores do.
    pub(crate) fn predictor(&self) -> Option<Predictor> {
        self.replaces_order().then(|| Predictor {
            expectation: self.adaptation.expectation.clone(),
            adapted: self.adapted.clone(),
            measured: Arc::clone(&self.points),
        })
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
