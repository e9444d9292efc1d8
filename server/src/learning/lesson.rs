use std::sync::Arc;

use hlorank_adaptation::{
    AdaptedModel, Basis, Expectation, MAX_SIZE, Measurements, Point, Prior, RelatedBasis,
    RelatedList, Slowdown, SourceKind, TaughtByLists, statistics::mean,
};
use hlorank_graph::{InstanceFeatures, SegmentedGraph, Task};

use super::{
    ReporterShare,
    lesson_cache::LessonCache,
    measured::MeasuredConfigs,
    predict::{Predictor, points_of_measured},
};
use crate::{
    call::MAX_LEARNED,
    graphs::Warning,
    memory::HeldBytes,
    model::{ExpectedTau, ScoreUnit},
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
    /// What related lists taught, if the call asked for them.
    pub(crate) sources: Vec<RelatedSource>,
    /// What takes the place of the model's scores, if related lists say something.
    pub(crate) expectation: Option<Expectation>,
    /// Whose measurements it rests on.
    pub(crate) reporters: Arc<Vec<ReporterShare>>,
}

/// What a related list taught, or several together.
#[derive(Clone)]
pub(crate) struct RelatedSource {
    pub(crate) kind: SourceKind,
    /// The name of another target; else empty.
    pub(crate) target: String,
    pub(crate) basis: RelatedBasis,
}

/// What related lists say, before it is compared with the target's own measurements.
#[derive(Default)]
pub(super) struct RelatedLesson {
    /// The features of the call's instance, and what others taught.
    pub(super) features: Arc<InstanceFeatures>,
    pub(super) instances: Option<TaughtByLists>,
    /// Lists that are learned by the call. What later ones say takes the place of what earlier ones say.
    pub(super) read: Vec<ReadLists>,
}

/// Related lists that were read.
pub(super) struct ReadLists {
    pub(super) kind: SourceKind,
    pub(super) prior: Prior,
    pub(super) lists: Vec<RelatedList>,
    /// The names of other targets.
    pub(super) targets: Vec<String>,
    /// The memory that they take.
    pub(super) _held: HeldBytes,
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

    /// Adds what related lists say, given the graph's own measurements.
    pub(super) fn relate(
        &mut self,
        cache: &LessonCache,
        related: RelatedLesson,
        own: &Measurements,
    ) {
        let instances = related.instances.into_iter();
        let instances = instances.map(|taught| (SourceKind::Instances, Vec::new(), taught));
        let read = related.read.into_iter().map(|read| {
            let taught = cache.relate(read.kind, read.prior, read.lists, own);
            (read.kind, read.targets, taught)
        });
        for (kind, targets, (model, bases)) in instances.chain(read) {
            let sources = bases.into_iter().enumerate();
            let sources = sources.map(|(number, basis)| RelatedSource {
                kind,
                target: match kind {
                    SourceKind::Targets => targets[number].clone(),
                    SourceKind::Instances | SourceKind::Kernels => String::new(),
                },
                basis,
            });
            self.adaptation.sources.extend(sources);
            if let Some(model) = model {
                let features = Arc::clone(&related.features);
                let expectation = Expectation { model, features };
                self.warnings.extend(unknown_values(&expectation));
                self.adaptation.expectation = Some(expectation);
            }
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
        self.relate(cache, related, &measured.measurements(&points));
        let adaptation = &mut self.adaptation;
        let mut prior = scores.prior;
        if let Some(expectation) = &adaptation.expectation {
            expectation.replace_scores(&mut points);
            prior = expectation.prior();
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

    /// How far the first configuration of a ranking is expected to be above the fastest, given its score; nothing if scores do not rest
    /// on other instances alone.
    pub(crate) fn expected_slowdown(&self, lowest: f32, configs: usize) -> Option<Slowdown> {
        let expectation = self.adaptation.expectation.as_ref();
        let alone = expectation.filter(|_| self.adapted.is_none());
        alone?.slowdown(lowest.into(), configs)
    }

    /// What is expected of a ranking by what other targets or instances say: as much as they say of each other.
    pub(crate) fn expected_by_sources(&self) -> Option<ExpectedTau> {
        let used = self.adaptation.sources.iter();
        let used: Vec<&RelatedSource> = used
            .filter(|source| source.basis.refusal.is_none() && source.kind != SourceKind::Kernels)
            .collect();
        let agreements: Vec<f64> = used.iter().map(|source| source.basis.agreement).collect();
        let lists: usize = used.iter().map(|source| source.basis.lists).sum();
        // A single source has no other to be compared with.
        (lists > 1).then(|| ExpectedTau {
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

/// Warns of texts that no measured instance has: what they change cannot be guessed.
fn unknown_values(expectation: &Expectation) -> Option<Warning> {
    let unknown = expectation.unknown_values().into_iter();
    let unknown: Vec<String> = unknown
        .map(|(name, text)| format!("`{name}` = {text:?}"))
        .collect();
    (!unknown.is_empty()).then(|| Warning {
        reason: "INSTANCE_VALUE_UNKNOWN",
        message: format!(
            "no measured instance has {}, so the ranking may be far off; measure some configurations of this instance",
            unknown.join(" and ")
        ),
    })
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
