use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, SegmentedGraph};

use super::{
    partial::score_in_time,
    scored::{Scored, answer_bytes},
    select::ModelChoice,
};
use crate::{
    call::{BatchReader, Call, CallError, Deadline, Position, SentMeasurements},
    compute::Class,
    engine::{BatchPart, Engine, Terms},
    graphs::Warning,
    learning::{Evaluator, Learner, Learning, Lesson, ScoredConfigs, WantedMeasurements},
    metrics::Metrics,
    model::{Model, ScoreUnit, SeenList},
    outcome::{KernelTime, Timings},
};

/// What a call asks: the graph, the model that answers, and what was learned of measurements before anything is scored.
pub(crate) struct Query {
    pub(crate) call: Call,
    pub(crate) graph: Arc<SegmentedGraph>,
    /// The model version that scores.
    pub(crate) model: Arc<Model>,
    /// What the call learned, if it asked for that.
    pub(crate) lesson: Option<Lesson>,
    pub(super) choice: ModelChoice,
    pub(super) reader: BatchReader,
    pub(super) engine: Arc<Engine>,
    pub(super) metrics: Arc<Metrics>,
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
            graph: &self.graph,
            reader: &self.reader,
        };
        let lesson = learning.learn(learner, sent, wanted).await?;
        Ok(Self {
            lesson: Some(lesson),
            ..self
        })
    }

    /// What scores the configurations of the call.
    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator {
            engine: Arc::clone(&self.engine),
            model: Arc::clone(&self.model),
            graph: Arc::clone(&self.graph),
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
    ) -> Result<Scored, CallError> {
        if scoring.is_partial {
            let manifest = self.model.manifest();
            if !manifest.kind().allows_partial() {
                return Err(CallError::PartialUnsupported {
                    model: manifest.name.clone(),
                });
            }
            if let Some(deadline) = self.call.deadline {
                return self.score_in_time(batch, deadline, scoring).await;
            }
        }
        let asked = Instant::now();
        let kept_bytes = self.bytes_to_keep(&batch, scoring);
        // The engine copies configurations that others use after it.
        let is_shared = self.lesson.is_some() || scoring.keeps_batch;
        let class = self.reader.accept(&batch, 1 + usize::from(is_shared))?;
        let terms = self.terms(class, before.batches > 0);
        // A batch that is refused in any case need not be read.
        self.engine.check(&self.model, &self.graph, terms)?;
        let score = self.scoring(batch, before, terms, scoring);
        let scored = match class {
            Class::Interactive => {
                // One worker does all of a small call, because handing the pieces to others would cost more than they do.
                let driven = self.engine.pool().drive(score).await?;
                driven.value.map(|(mut scored, kept, seen)| {
                    scored.evaluation.stages.waited += driven.waited;
                    (scored, kept, seen)
                })
            }
            Class::Bulk => score.await,
        };
        let (scored, kept, seen) = scored.map_err(|error| error.numbered_after(before.configs))?;
        let kept = kept.map(|kept| (kept, kept_bytes));
        Ok(self.scored(before, asked, scored, seen, kept))
    }

    /// Returns a future that reads and scores a batch, which it returns, too, if it is kept, and what was seen of it.
    fn scoring(
        &self,
        batch: EncodedBatch,
        before: Position,
        terms: Terms,
        scoring: Scoring,
    ) -> impl Future<
        Output = Result<(ScoredConfigs, Option<Arc<Configurations>>, SeenList), CallError>,
    > + Send
    + 'static {
        let read = self.reading(batch, before);
        let evaluator = self.evaluator();
        async move {
            let pool = evaluator.engine.pool();
            let read = pool.run(terms.class, move |_| read()).await?;
            let (batch, seen) = read.value?;
            let batch = Arc::new(batch);
            // Nobody else has a batch that is not kept, so that the engine need not copy it.
            let kept = scoring.keeps_batch.then(|| Arc::clone(&batch));
            let mut scored = evaluator.score(batch.into(), terms, scoring.top_k).await?;
            // The call waited for the first of its work. Later waits count towards their stages.
            scored.evaluation.stages.waited = read.waited;
            Ok((scored, kept, seen))
        }
    }

    /// Scores the first configurations of a batch, as many as there is time for before the deadline.
    async fn score_in_time(
        &self,
        batch: EncodedBatch,
        deadline: Deadline,
        scoring: Scoring,
    ) -> Result<Scored, CallError> {
        let asked = Instant::now();
        let sent = batch.count();
        let kept_bytes = self.bytes_to_keep(&batch, scoring);
        let ReadBatch {
            class,
            configurations: all,
            seen,
        } = self.read(batch).await?;
        let kept = scoring.keeps_batch.then(|| (Arc::clone(&all), kept_bytes));
        let scored = score_in_time(&self.evaluator(), all, deadline, class, scoring.top_k).await?;
        // The metric counts rankings that lack configurations, and not those that only may.
        if scored.evaluation.scores.len() < sent {
            self.choice.series.ranked_in_part();
        }
        Ok(self.scored(Position::default(), asked, scored, seen, kept))
    }

    /// Reads the only batch of a call on a worker.
    pub(crate) async fn read(
        &self,
        batch: EncodedBatch,
    ) -> Result<ReadBatch, CallError> {
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
    ) -> Scored {
        let evaluation = &configs.evaluation;
        self.choice.series.scored(evaluation.reuse);
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
        Scored {
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
        let is_calibrated = self.model.artifact().calibration().is_some();
        move || {
            let batch = reader.read(&batch, batch.field(), before)?;
            let seen = is_calibrated.then(|| SeenList::configurations(&batch));
            Ok((batch, seen.unwrap_or_default()))
        }
    }

    /// The bytes of a batch that is kept once it was scored.
    fn bytes_to_keep(&self, batch: &EncodedBatch, scoring: Scoring) -> usize {
        if scoring.keeps_batch {
            self.reader.bytes(batch)
        } else {
            0
        }
    }

    /// Returns the kernels of some configurations of a batch that was kept, and their predicted seconds.
    pub(crate) async fn explain(
        &self,
        scored: &Scored,
        configs: &[u32],
    ) -> Result<Vec<Vec<KernelTime>>, CallError> {
        let unsupported = |why| Err(CallError::ExplainUnsupported { why });
        if self.graph.whole.program().is_none() {
            return unsupported("only fusions have kernels");
        }
        if self.replaces_scores() {
            return unsupported("scores that are adapted to measurements are no sums over kernels");
        }
        let Some(batch) = &scored.kept else {
            return Ok(Vec::new());
        };
        let numbers = configs.iter().map(|&config| config as usize).collect();
        let chosen = BatchPart::of_numbers(Arc::clone(batch), numbers);
        let terms = self.terms(Class::Interactive, true);
        let kernels = self.engine.kernels(&self.model, &self.graph, chosen, terms);
        Ok(kernels.await?)
    }

    /// Whether something predicts run times in place of the model.
    fn replaces_scores(&self) -> bool {
        self.lesson.as_ref().is_some_and(Lesson::replaces_order)
    }

    /// Whether scores are adapted to measurements.
    pub(crate) fn is_adapted(&self) -> bool {
        self.lesson.as_ref().and_then(Lesson::basis).is_some()
    }

    /// The unit of scores that are not adapted: what only other kernels or targets say is ln(seconds) up to a common number,
    /// whatever the unit of the model is.
    pub(crate) fn unit(&self) -> ScoreUnit {
        if self.replaces_scores() {
            ScoreUnit::None
        } else {
            self.model.manifest().unit()
        }
    }

    /// What was unusual about the choice of the model, and about what predictions rest on.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        let of_lesson = self.lesson.iter().flat_map(Lesson::warnings);
        self.choice.warning.iter().chain(of_lesson).cloned()
    }

    /// Records the stage times of an answer with scores.
    pub(crate) fn record_scored(&self, timings: &Timings) {
        self.metrics.stages.scored(timings);
    }

    /// Records the stage times of an answer with a ranking.
    pub(crate) fn record_ranked(&self, timings: &Timings) {
        self.metrics.stages.ranked(timings);
    }
}
