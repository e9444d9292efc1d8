use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, GraphError, Limits, SegmentedGraph};

use super::{
    partial::score_in_time,
    scored::{ScoredCall, answer_bytes},
    select::{ModelChoice, SelectedModel},
};
use crate::{
    call::{BatchReader, Call, CallError, Deadline, Position, SentMeasurements},
    compute::Class,
    engine::{Engine, Terms},
    graphs::{FoundGraph, Warning},
    learning::{Evaluator, Learner, Learning, Lesson, ScoredConfigs, WantedMeasurements},
    metrics::Metrics,
    model::{Manifest, Model, ScoreUnit, SeenList},
    outcome::Timings,
};

/// What a call asks: the graph, the model that answers, and what was learned of measurements before anything is scored.
pub(crate) struct Query {
    pub(crate) call: Call,
    pub(crate) found: FoundGraph,
    /// The model version that scores.
    pub(crate) model: Arc<Model>,
    /// What the call learned, if it asked for that.
    pub(crate) lesson: Option<Lesson>,
    pub(super) choice: ModelChoice,
    pub(super) reader: BatchReader,
    pub(super) engine: Arc<Engine>,
    pub(super) metrics: Arc<Metrics>,
}

/// Opens the queries of calls.
pub(crate) struct Queries {
    engine: Arc<Engine>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

/// How a batch is scored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scoring {
    /// Length of the ranking; 0 for all.
    pub(crate) top_k: u32,
    /// Whether the batch is kept, for an explanation.
    pub(crate) keeps_batch: bool,
    /// Whether the first configurations alone are scored if there is no time for all.
    pub(crate) is_partial: bool,
}

/// A batch that was read.
pub(crate) struct ReadBatch {
    pub(crate) class: Class,
    pub(crate) configurations: Arc<Configurations>,
    /// What was seen of the configurations.
    pub(crate) seen: SeenList,
}

impl Queries {
    /// Scores queries on an engine, within limits.
    pub(crate) fn new(engine: Arc<Engine>, limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self {
            engine,
            limits,
            metrics,
        }
    }

    /// Opens the query of a call for a model and a graph. Fails if the nodes of the graph have other columns than the model
    /// takes.
    pub(crate) fn open(
        &self,
        call: Call,
        SelectedModel { selection, choice }: SelectedModel,
        found: FoundGraph,
    ) -> Result<Query, CallError> {
        let graph = &found.graph;
        let model = selection.of_graph(graph.hash);
        // A call that is refused is recorded with the version that refuses it.
        call.record.answered_by(&model);
        check_columns(model.manifest(), graph)?;
        let place = call.place.clone();
        Ok(Query {
            reader: BatchReader::new(&model, Arc::clone(graph), self.limits, place),
            engine: Arc::clone(&self.engine),
            metrics: Arc::clone(&self.metrics),
            lesson: None,
            call,
            model,
            choice,
            found,
        })
    }
}

/// Checks that the nodes of a graph of a feature set have the columns that the model takes.
fn check_columns(manifest: &Manifest, graph: &SegmentedGraph) -> Result<(), GraphError> {
    let (Some(set), Some(graph)) = (manifest.features.named(), graph.whole.feature_graph()) else {
        return Ok(());
    };
    // Names and numbers of columns may be equal although the columns are others.
    let mut described = graph.description().into_iter();
    if described.any(|described| **described != *set) {
        let nodes = set.node_features().join(", ");
        let configs = set.config_features().join(", ");
        return Err(GraphError::SetDiffers {
            model: manifest.name.clone(),
            columns: format!("the node columns {nodes} and the configuration columns {configs}"),
        });
    }
    let found = graph.columns();
    let expected = set.node_features().len();
    if found != expected {
        return Err(GraphError::WrongColumns {
            found,
            set: set.name().to_owned(),
            model: manifest.name.clone(),
            expected,
        });
    }
    Ok(())
}

impl Query {
    /// Limits the number of configurations of all batches together.
    pub(crate) fn limited_to(mut self, max_configs: usize) -> Self {
        self.reader.limit_to(max_configs);
        self
    }

    /// The same with what the call learns from measurements.
    pub(crate) async fn adapted(
        self,
        learning: &Learning,
        sent: SentMeasurements,
        wanted: WantedMeasurements,
    ) -> Result<Self, CallError> {
        let learner = Learner {
            call: &self.call,
            model: &self.model,
            graph: &self.found.graph,
            reader: &self.reader,
        };
        let lesson = learning.learn(learner, sent, wanted).await?;
        Ok(Self {
            lesson: Some(lesson),
            ..self
        })
    }

    /// Number of configuration columns that the model takes, if it names them.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.reader.columns()
    }

    /// What scores the configurations of the call.
    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator {
            engine: Arc::clone(&self.engine),
            model: Arc::clone(&self.model),
            graph: Arc::clone(&self.found.graph),
            predictor: self.lesson.as_ref().and_then(Lesson::predictor),
        }
    }

    /// The terms of work on a batch, the first of the call or one that continues it.
    pub(crate) fn terms(&self, class: Class, continues_request: bool) -> Terms {
        Terms {
            deadline: self.call.deadline.map(Deadline::instant),
            class,
            continues_request,
        }
    }

    /// Scores the batch that comes after others. The batch is read once, as the first of the work on it.
    pub(crate) async fn score(
        &self,
        batch: EncodedBatch,
        before: Position,
        scoring: Scoring,
    ) -> Result<ScoredCall, CallError> {
        let asked = Instant::now();
        let kept_bytes = if scoring.keeps_batch {
            self.reader.bytes(&batch)
        } else {
            0
        };
        let scored = if let Some(deadline) = self.partial_deadline(scoring)? {
            self.score_until(deadline, batch, scoring).await
        } else {
            let scored = self.score_all(batch, before, scoring).await;
            scored.map_err(|error| error.numbered_after(before.configs))
        };
        let (configs, kept, seen) = scored?;
        let kept = kept.map(|batch| (batch, kept_bytes));
        Ok(self.scored(before, asked, configs, seen, kept))
    }

    /// The deadline of a partial ranking; `None` if all configurations are scored. Fails if the model needs them all.
    fn partial_deadline(&self, scoring: Scoring) -> Result<Option<Deadline>, CallError> {
        let manifest = self.model.manifest();
        if !scoring.is_partial {
            Ok(None)
        } else if manifest.kind.allows_partial() {
            Ok(self.call.deadline)
        } else {
            Err(CallError::PartialUnsupported {
                model: manifest.name.clone(),
            })
        }
    }

    async fn score_all(
        &self,
        batch: EncodedBatch,
        before: Position,
        scoring: Scoring,
    ) -> Result<ScoredParts, CallError> {
        // The engine copies configurations that others use after it.
        let is_shared = self.lesson.is_some() || scoring.keeps_batch;
        let class = self.reader.accept(&batch, 1 + usize::from(is_shared))?;
        // What is learned of measurements takes longer to apply than a batch to score.
        let is_short = self.lesson.is_none() && self.reader.is_short(&batch);
        let terms = self.terms(class, before.batches > 0);
        // A batch that is refused in any case need not be read.
        self.engine.check(&self.model, &self.found.graph, terms)?;
        let read = self.reading(batch, before);
        let evaluator = self.evaluator();
        let score = async move {
            let read = evaluator.engine.pool().run_short(class, read).await?;
            let (batch, seen) = read.value?;
            let batch = Arc::new(batch);
            // Nobody else has a batch that is not kept, so that the engine need not copy it.
            let kept = scoring.keeps_batch.then(|| Arc::clone(&batch));
            let mut scored = evaluator.score(batch.into(), terms, scoring.top_k).await?;
            // The call waited for the first of its work. Later waits count towards their stages.
            scored.evaluation.stages.waited = read.waited;
            Ok((scored, kept, seen))
        };
        match class {
            Class::Interactive => {
                // One worker does all of a small call, because handing the pieces to others would cost more than they do.
                let pool = self.engine.pool();
                let driven = if is_short {
                    pool.drive_here(score).await?
                } else {
                    pool.drive(score).await?
                };
                let mut parts: ScoredParts = driven.value?;
                parts.0.evaluation.stages.waited += driven.waited;
                Ok(parts)
            }
            Class::Bulk => score.await,
        }
    }

    /// Scores the first configurations of a batch, as many as there is time for before the deadline.
    async fn score_until(
        &self,
        deadline: Deadline,
        batch: EncodedBatch,
        scoring: Scoring,
    ) -> Result<ScoredParts, CallError> {
        let sent = batch.count();
        let read = self.read(batch).await?;
        let all = read.configurations;
        let kept = scoring.keeps_batch.then(|| Arc::clone(&all));
        let scored =
            score_in_time(&self.evaluator(), all, deadline, read.class, scoring.top_k).await?;
        // The metric counts rankings that lack configurations, and not those that only may.
        if scored.evaluation.scores.len() < sent {
            self.choice.series.work.partial_rankings.increment(1);
        }
        Ok((scored, kept, read.seen))
    }

    /// Reads the only batch of a call on a worker.
    pub(crate) async fn read(&self, batch: EncodedBatch) -> Result<ReadBatch, CallError> {
        // The caller has the batch while the engine scores a copy of it.
        let class = self.reader.accept(&batch, 2)?;
        let read = self.reading(batch, Position::default());
        let read = self.engine.pool().run(class, move |_| read()).await?;
        let (batch, seen) = read.value?;
        Ok(ReadBatch {
            class,
            configurations: Arc::new(batch),
            seen,
        })
    }

    /// Records what was scored of a batch after others, and holds what the answer takes.
    pub(crate) fn scored(
        &self,
        before: Position,
        asked: Instant,
        configs: ScoredConfigs,
        seen: SeenList,
        kept: Option<(Arc<Configurations>, usize)>,
    ) -> ScoredCall {
        let evaluation = &configs.evaluation;
        self.choice.series.work.scored(evaluation.reuse);
        let record = &self.call.record;
        record.scored(evaluation.reuse, asked, &evaluation.stages);
        let scores = before.configs + evaluation.scores.len();
        let has_deviations = usize::from(!configs.deviations.is_empty());
        let answer = answer_bytes(scores * (1 + has_deviations), scores);
        let (kept, kept_bytes) = kept.unzip();
        // What the batch and its plan took is free again.
        self.call
            .place
            .hold_only(answer + kept_bytes.unwrap_or_default());
        ScoredCall {
            batches: 1,
            configs,
            seen,
            kept,
            asked,
        }
    }

    /// Returns a function that reads a batch, for a worker, and looks at some of its configurations.
    fn reading(
        &self,
        batch: EncodedBatch,
        before: Position,
    ) -> impl FnOnce() -> Result<(Configurations, SeenList), CallError> + Send + 'static {
        let reader = self.reader.clone();
        let is_calibrated = self.model.artifact.calibration.is_some();
        move || {
            let batch = reader.read(&batch, batch.field(), before)?;
            let seen = is_calibrated.then(|| SeenList::configurations(&batch));
            Ok((batch, seen.unwrap_or_default()))
        }
    }

    /// Whether something predicts run times in place of the model.
    pub(super) fn replaces_scores(&self) -> bool {
        self.lesson.as_ref().is_some_and(Lesson::replaces_order)
    }

    /// Whether scores are adapted to measurements.
    pub(crate) fn is_adapted(&self) -> bool {
        self.lesson
            .as_ref()
            .and_then(|lesson| lesson.adaptation.basis)
            .is_some()
    }

    /// The unit of scores that are not adapted: what only other kernels or targets say is ln(seconds) up to a common number,
    /// whatever the unit of the model is.
    pub(crate) fn unit(&self) -> ScoreUnit {
        if self.replaces_scores() {
            ScoreUnit::None
        } else {
            self.model.manifest().unit
        }
    }

    /// What was unusual about the graph and the choice of the model, and about what predictions rest on.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let of_lesson = self.lesson.iter().flat_map(|lesson| &lesson.warnings);
        let of_graph = self.found.warnings.iter();
        of_graph.chain(&self.choice.warning).chain(of_lesson)
    }

    /// Records the stage times of an answer with scores.
    pub(crate) fn record_scored(&self, timings: &Timings) {
        self.metrics.stages.scored(timings);
    }

    /// Records the stage times of an answer with a ranking.
    pub(crate) fn record_ranked(&self, timings: &Timings) {
        self.metrics.stages.rank.record(timings.rank);
    }
}

/// What was scored of a batch, the batch if it is kept, and what was seen of it.
type ScoredParts = (ScoredConfigs, Option<Arc<Configurations>>, SeenList);
