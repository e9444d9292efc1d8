use std::{fmt::Display, sync::Arc};

use hlorank_graph::{Configurations, EncodedBatch, SegmentedGraph};

use super::{
    Lesson,
    lesson::{Evidence, KernelPool, learn, learning_bytes},
    measured::{MeasuredConfigs, MeasuredPoints, SentConfigs, join},
    other_targets::{OtherMeasurements, OtherTargets},
    predict::{Expectation, points_of_measured},
};
use crate::{
    adaptation::{AdaptedCache, Measurements, SourcesCache},
    call::{
        ADAPT, BatchReader, Call, CallError, Deadline, MAX_LEARNED, Position, SentMeasurements,
        class_of,
    },
    compute::{Class, ComputePool},
    engine::{Engine, Terms},
    graphs::Warning,
    model::{Model, ScoreUnit},
    store::{Measurement, Subject, Whose},
    stored_measurements::StoredMeasurements,
};

/// Learns from measurements for calls.
pub(crate) struct Learning {
    engine: Arc<Engine>,
    /// What earlier calls learned.
    cache: Arc<AdaptedCache>,
    /// What earlier calls found when they compared other targets.
    pub(super) sources: Arc<SourcesCache>,
    pub(super) stored: Arc<StoredMeasurements>,
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

impl WantedMeasurements {
    /// Whose stored measurements count for a call about a target.
    fn source(&self, target: String, call: &Call) -> Source {
        let client = call.client.reporter.clone();
        let whose = if self.own_only {
            Whose::Only(client)
        } else {
            Whose::First(client)
        };
        Source { target, whose }
    }
}

impl Learning {
    /// Learns with an engine that scores what was measured, and from stored measurements.
    pub(crate) fn new(engine: Arc<Engine>, stored: Arc<StoredMeasurements>) -> Self {
        Self {
            engine,
            cache: Arc::default(),
            sources: Arc::default(),
            stored,
        }
    }

    /// Learns from measured configurations, and from stored ones if the call asks for them.
    pub(crate) async fn learn(
        &self,
        learner: Learner<'_>,
        sent: SentMeasurements,
        wanted: WantedMeasurements,
    ) -> Result<Lesson, CallError> {
        let source = wanted.source(sent.target.clone(), learner.call);
        let mut known = Known {
            target: sent.target.clone(),
            ..Known::default()
        };
        // What the call sent is checked before the store is asked.
        let sent = self.sent_configs(learner, sent).await?;
        let stored = if wanted.stored {
            known.unless_failed(self.stored(learner, &source, MAX_LEARNED).await)
        } else {
            None
        };
        // A store that failed is not asked again.
        let uses_pool = stored.is_some();
        let stored = stored.unwrap_or_default();
        let warnings = &mut known.warnings;
        let measured = self.join(learner, sent, stored, warnings).await?;
        let others = self.other_measurements(learner, &source, wanted.others);
        known.others = known.unless_failed(others.await).flatten();
        // The kernels of the structure come last, because they are scored behind all other work.
        if uses_pool {
            let pooled = self.pooled(learner, &source).await;
            known.pooled = known.unless_failed(pooled).flatten();
        }
        match measured {
            None => self.learn_from_others(known).await,
            Some(measured) => self.learn_from(learner, measured, known).await,
        }
    }

    pub(super) fn pool(&self) -> &Arc<ComputePool> {
        self.engine.pool()
    }

    /// Reads the measured configurations that the call sent.
    async fn sent_configs(
        &self,
        learner: Learner<'_>,
        sent: SentMeasurements,
    ) -> Result<SentConfigs, CallError> {
        let configurations = match sent.batch {
            None => None,
            Some(batch) => Some(self.read(learner, batch).await?),
        };
        Ok(SentConfigs {
            configurations,
            outcomes: sent.outcomes,
            ids: sent.ids,
            reporter: learner.call.client.reporter.clone(),
        })
    }

    /// Reads a batch of measured configurations on a worker.
    async fn read(
        &self,
        learner: Learner<'_>,
        batch: EncodedBatch,
    ) -> Result<Configurations, CallError> {
        // The batch is kept after the engine has scored a copy of it.
        let class = learner.reader.accept_as(&batch, ADAPT.batch, 2)?;
        let reader = learner.reader.clone();
        let read = move |_| reader.read(&batch, ADAPT.batch, Position::default());
        self.pool().run(class, read).await?.value
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

    /// Learns what other kernels and targets say, if nothing was measured.
    async fn learn_from_others(&self, known: Known) -> Result<Lesson, CallError> {
        let given = move |_| Lesson::nothing(known.given(&Measurements::default()));
        Ok(self.pool().run(Class::Bulk, given).await?.value)
    }

    /// Learns from measured configurations: scores them, compares other targets, and fits what they say.
    async fn learn_from(
        &self,
        learner: Learner<'_>,
        measured: MeasuredConfigs,
        known: Known,
    ) -> Result<Lesson, CallError> {
        let scores = self.scores(learner, &measured.configurations).await?;
        // The scores are there already, so that memory is held while it is used, and not while the
        // engine works.
        let bytes = learning_bytes(measured.configurations.len(), learner.graph);
        let held = self.engine.memory().hold(bytes)?;
        let manifest = learner.model.manifest();
        let unit = manifest.unit();
        let of_scores = manifest.prior();
        let cache = Arc::clone(&self.cache);
        let learn = move |_| {
            let (evidence, measured) = known.weigh(measured, &scores, unit);
            let prior = evidence.prior(of_scores);
            Lesson::of(evidence, learn(&cache, prior, measured), held)
        };
        Ok(self.pool().run(Class::Bulk, learn).await?.value)
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
pub(super) struct Source {
    pub(super) target: String,
    pub(super) whose: Whose,
}

impl Source {
    pub(super) fn subject(&self, graph: &SegmentedGraph) -> Subject {
        Subject {
            target: self.target.clone(),
            graph: graph.hash,
        }
    }
}

/// What is known beside the measurements of the graph on the target.
#[derive(Default)]
struct Known {
    target: String,
    pooled: Option<KernelPool>,
    others: Option<OtherMeasurements>,
    warnings: Vec<Warning>,
}

impl Known {
    /// What it says of measured configurations, and their points. What is expected takes the place of the points' scores.
    fn weigh(
        self,
        configs: MeasuredConfigs,
        scores: &[f32],
        unit: ScoreUnit,
    ) -> (Evidence, MeasuredPoints) {
        let points = points_of_measured(&configs.configurations, scores, unit);
        let mut measured = MeasuredPoints { configs, points };
        let evidence = self.given(&measured.measurements());
        if let Some(expectation) = &evidence.expectation {
            expectation.replace_scores(&mut measured.points);
        }
        (evidence, measured)
    }

    /// What it says, given the target's own measurements. Other targets tell more of a graph than other kernels do.
    fn given(self, own: &Measurements) -> Evidence {
        let others = self.others.map(|others| others.given(own));
        let (sources, described) = others.unwrap_or_default();
        let pool = self.pooled.as_ref().and_then(|pooled| pooled.pool.clone());
        let of_targets = sources.map(Expectation::OfTargets);
        Evidence {
            target: self.target,
            pooled: self.pooled.map(|pooled| pooled.basis),
            sources: described,
            expectation: of_targets.or(pool.map(Expectation::OfKernels)),
            warnings: self.warnings,
        }
    }

    /// Returns what the store answered. If it failed, the call goes on without, and with a warning.
    fn unless_failed<T>(&mut self, answered: Result<T, CallError>) -> Option<T> {
        answered
            .map_err(|error| self.warnings.push(unused(&error)))
            .ok()
    }
}

/// Warns that stored measurements were not used.
fn unused(error: &dyn Display) -> Warning {
    Warning {
        reason: "STORED_MEASUREMENTS_UNUSED",
        message: format!("stored measurements were not used: {error}"),
    }
}
