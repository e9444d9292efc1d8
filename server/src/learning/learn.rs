use std::{fmt::Display, sync::Arc};

use hlorank_adaptation::{Measurements, SourceKind};
use hlorank_graph::{Configurations, FeatureGraph, SegmentedGraph, Task};

use super::{
    Lesson,
    instance_models::InstanceModels,
    lesson::{MeasuredScores, RelatedLesson, learning_bytes},
    lesson_cache::LessonCache,
    measured::{MeasuredConfigs, SentConfigs, join},
};
use crate::{
    call::{
        ADAPT, BatchReader, Call, CallError, Deadline, MAX_LEARNED, Position, SentMeasurements,
        class_of,
    },
    compute::{Class, ComputePool},
    engine::{Engine, Terms},
    graphs::Warning,
    metrics::CacheSizes,
    model::Model,
    store::{Measurement, ReporterFilter, Subject},
    stored_measurements::StoredMeasurements,
};

/// Learns from measurements for calls.
pub(crate) struct Learning {
    engine: Arc<Engine>,
    /// What earlier calls learned.
    pub(super) cache: Arc<LessonCache>,
    pub(super) stored: Arc<StoredMeasurements>,
    pub(super) instance_models: InstanceModels,
}

/// A call that learns before it scores.
#[derive(Clone, Copy)]
pub(crate) struct Learner<'a> {
    pub(crate) call: &'a Call,
    pub(crate) model: &'a Arc<Model>,
    pub(crate) graph: &'a Arc<SegmentedGraph>,
    pub(crate) reader: &'a BatchReader,
}

/// What a call learns from, beside the measurements that it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedMeasurements {
    /// Whether stored measurements of its target count: of the graph, and of others of its structure.
    pub(crate) stored: bool,
    /// Other targets whose stored measurements count.
    pub(crate) others: OtherTargets,
    /// Whether only those of the call's client count.
    pub(crate) own_only: bool,
}

/// Other targets whose measurements a call learns from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OtherTargets {
    /// Those of these names; may be none.
    Named(Vec<String>),
    /// All that have measurements of the graph.
    All,
}

impl Learning {
    /// Learns with an engine that scores what was measured, and from stored measurements.
    pub(crate) fn new(engine: Arc<Engine>, stored: Arc<StoredMeasurements>) -> Self {
        Self {
            engine,
            cache: Arc::default(),
            stored,
            instance_models: InstanceModels::default(),
        }
    }

    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, sizes: &CacheSizes) {
        self.cache.sample(sizes);
        self.instance_models.sample(sizes);
    }

    /// Learns from measured configurations, and from stored ones if the call asks for them.
    pub(crate) async fn learn(
        &self,
        learner: Learner<'_>,
        sent: SentMeasurements,
        wanted: WantedMeasurements,
    ) -> Result<Lesson, CallError> {
        let target = sent.target.clone();
        let client = learner.call.client.reporter.clone();
        let source = Source {
            target: target.clone(),
            whose: if wanted.own_only {
                ReporterFilter::Only(client)
            } else {
                ReporterFilter::First(client)
            },
        };
        let mut lesson = Lesson::new(target);
        let mut related = RelatedLesson::default();
        // What the call sent is checked before the store is asked.
        let sent = self.sent_configs(learner, sent).await?;
        let stored = if wanted.stored {
            lesson.unless_failed(self.stored(learner, &source, MAX_LEARNED).await)
        } else {
            None
        };
        // A store that failed is not asked again.
        let is_stored = stored.is_some();
        let stored = stored.unwrap_or_default();
        let warnings = &mut lesson.warnings;
        let measured = self.join(learner, sent, stored, warnings).await?;
        let features = learner.graph.whole.feature_graph();
        let features = features.map(FeatureGraph::instance_features);
        if is_stored && let Some(features) = features.filter(|features| !features.is_empty()) {
            let others = wanted.others.clone();
            let taught = self.instances(learner, &source, others).await;
            let taught = lesson.unless_failed(taught);
            if let Some(None) = taught {
                lesson.warnings.push(being_learned());
            }
            related.features = Arc::new(features.clone());
            related.instances = taught.flatten();
        }
        // Other instances bring the graph itself on other targets with them.
        if related.instances.is_none() {
            if is_stored && learner.graph.task == Task::Tile {
                let named = OtherTargets::Named(Vec::new());
                let kernels = self.related(SourceKind::Kernels, learner, &source, named);
                related
                    .read
                    .extend(lesson.unless_failed(kernels.read().await));
            }
            let targets = self.related(SourceKind::Targets, learner, &source, wanted.others);
            related
                .read
                .extend(lesson.unless_failed(targets.read().await));
        }
        let cache = Arc::clone(&self.cache);
        let Some(measured) = measured else {
            let relate = move |_| {
                lesson.relate(&cache, related, &Measurements::default());
                lesson
            };
            return Ok(self.pool().run(Class::Bulk, relate).await?.value);
        };
        let manifest = learner.model.manifest();
        let scores = MeasuredScores {
            values: self.scores(learner, &measured.configurations).await?,
            unit: manifest.unit,
            prior: manifest.prior,
        };
        // The scores are there already, so that memory is held while it is used, and not while the
        // engine works.
        let bytes = learning_bytes(measured.configurations.len(), learner.graph);
        let held = self.engine.memory().hold(bytes)?;
        let learn = move |_| lesson.learn(&cache, related, &measured, &scores, held);
        Ok(self.pool().run(Class::Bulk, learn).await?.value)
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(super) fn pool(&self) -> &Arc<ComputePool> {
        self.engine.pool()
    }

    /// Reads the measured configurations that the call sent, on a worker.
    async fn sent_configs(
        &self,
        learner: Learner<'_>,
        sent: SentMeasurements,
    ) -> Result<SentConfigs, CallError> {
        let mut configurations = None;
        if let Some(batch) = sent.batch {
            // The batch is kept after the engine has scored a copy of it.
            let class = learner.reader.accept_as(&batch, ADAPT.batch, 2)?;
            let reader = learner.reader.clone();
            let read = move |_| reader.read(&batch, ADAPT.batch, Position::default());
            configurations = Some(self.pool().run(class, read).await?.value?);
        }
        Ok(SentConfigs {
            configurations,
            outcomes: sent.outcomes,
            ids: sent.ids,
            reporter: learner.call.client.reporter.clone(),
        })
    }

    /// Returns the stored measurements of the call's graph, at most `count`.
    pub(super) async fn stored(
        &self,
        learner: Learner<'_>,
        source: &Source,
        count: usize,
    ) -> Result<Vec<Measurement>, CallError> {
        let subject = source.subject(learner.graph);
        let hold = |bytes| Ok(learner.call.place.hold(bytes)?);
        let stored = &self.stored;
        let drawn = stored.draw(&subject, learner.graph, &source.whose, count, hold);
        drawn.await
    }

    /// Joins what the call sent with what is stored. If what is stored cannot be used, the call goes on without it.
    async fn join(
        &self,
        learner: Learner<'_>,
        sent: SentConfigs,
        stored: Vec<Measurement>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<MeasuredConfigs>, CallError> {
        // Without stored configurations to read, there is nothing to do for a worker.
        if stored.is_empty() {
            return Ok(sent.into_measured());
        }
        let graph = Arc::clone(learner.graph);
        let columns = learner.reader.columns();
        // What was sent is written as what is stored, in which each configuration takes all of its columns.
        learner.call.place.hold(sent.canonical_bytes(&graph))?;
        let join = move |_| join(&graph, columns, sent, stored);
        let (measured, error) = self.pool().run(Class::Bulk, join).await?.value;
        warnings.extend(error.map(|error| unused(&error)));
        Ok(measured)
    }

    /// The model's scores of what was measured.
    pub(super) async fn scores(
        &self,
        learner: Learner<'_>,
        configurations: &Arc<Configurations>,
    ) -> Result<Vec<f32>, CallError> {
        let terms = Terms {
            deadline: learner.call.deadline.map(Deadline::instant),
            class: class_of(configurations.len()),
            continues_request: false,
        };
        let configurations = Arc::clone(configurations);
        let engine = &self.engine;
        let scored = engine.score(learner.model, learner.graph, configurations, terms);
        Ok(scored.await?.scores)
    }
}

/// Whose stored measurements count.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) target: String,
    pub(super) whose: ReporterFilter,
}

impl Source {
    pub(super) fn subject(&self, graph: &SegmentedGraph) -> Subject {
        Subject {
            target: self.target.clone(),
            graph: graph.hash,
        }
    }
}

impl Lesson {
    /// Returns what the store answered. If it failed, the call goes on without, and with a warning.
    fn unless_failed<T>(&mut self, answered: Result<T, CallError>) -> Option<T> {
        answered
            .map_err(|error| self.warnings.push(unused(&error)))
            .ok()
    }
}

/// Warns that an answer does not rest on other instances yet.
fn being_learned() -> Warning {
    Warning {
        reason: "INSTANCES_BEING_LEARNED",
        message: "the other instances are being learned, so the answer does not rest on them yet; ask again in some seconds"
            .to_owned(),
    }
}

/// Warns that stored measurements were not used.
fn unused(error: &dyn Display) -> Warning {
    Warning {
        reason: "STORED_MEASUREMENTS_UNUSED",
        message: format!("stored measurements were not used: {error}"),
    }
}
