use std::{mem::take, sync::Arc};

use hlorank_graph::{Configurations, SegmentedGraph};

use crate::{
    adaptation::PredictedList,
    call::{BatchReader, Call, Deadline},
    compute::Class,
    engine::{Engine, Terms},
    graphs::Warning,
    learning::{Adaptation, Evaluator, Learner, Lesson, Predictor},
    metrics::{Metrics, ModelSeries},
    model::{Model, ScoreUnit, SeenList, TargetMatch},
    outcome::{Reuse, Timings, UnscoredConfigs},
};

/// The session of one call: its graph, its model, and what was scored until now.
pub(crate) struct Session {
    pub(super) engine: Arc<Engine>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) reader: BatchReader,
    pub(super) call: Call,
    pub(super) model: Arc<Model>,
    pub(super) series: Arc<ModelSeries>,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) batches: usize,
    pub(super) scores: Vec<f32>,
    /// What the call learned from measurements, if it sent some.
    pub(super) lesson: Option<Lesson>,
    /// Length of the ranking; 0 for all.
    pub(super) top_k: u32,
    /// The deviation of each score that may be ranked, if they are adapted.
    pub(super) deviations: Vec<f32>,
    /// Whether the batch is kept after it was scored, for an explanation.
    pub(super) keeps_batch: bool,
    pub(super) kept_batch: Option<Arc<Configurations>>,
    /// The memory of the batch that is kept.
    pub(super) kept_bytes: usize,
    pub(super) reuse: Reuse,
    /// Configurations of all batches that got no score.
    pub(super) unscored: Option<UnscoredConfigs>,
    /// What was seen of the configurations.
    pub(super) seen: SeenList,
    /// What is predicted of some of them by what was learned.
    pub(super) sample: PredictedList,
    /// How well the model suits the target of the call.
    pub(super) suits: TargetMatch,
    /// What was unusual about the choice of the model.
    pub(super) warnings: Vec<Warning>,
}

impl Session {
    /// Sets the length of the ranking, 0 for all.
    pub(crate) fn ranking(self, top_k: u32) -> Self {
        Self { top_k, ..self }
    }

    /// Limits the number of configurations of all batches together.
    pub(crate) fn limited_to(mut self, max_configs: usize) -> Self {
        self.reader.limit_to(max_configs);
        self
    }

    /// Keeps the batch that is scored, for [`Self::explain`].
    pub(crate) fn keep_batch(&mut self) {
        self.keeps_batch = true;
    }

    /// The call, for what it learns.
    pub(crate) fn learner(&self) -> Learner<'_> {
        Learner {
            call: &self.call,
            model: &self.model,
            graph: &self.graph,
            reader: &self.reader,
        }
    }

    /// Adapts all that is scored afterwards to what the call learned.
    pub(crate) fn adapt_to(&mut self, lesson: Lesson) {
        self.lesson = Some(lesson);
    }

    /// The model version that scores.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn graph(&self) -> &Arc<SegmentedGraph> {
        &self.graph
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// What the call learned, if it sent measurements.
    pub(crate) fn lesson(&self) -> Option<&Lesson> {
        self.lesson.as_ref()
    }

    /// What scores the configurations of the call.
    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator {
            engine: Arc::clone(&self.engine),
            model: Arc::clone(&self.model),
            graph: Arc::clone(&self.graph),
            predictor: self.predictor(),
        }
    }

    /// The terms of the next batch.
    pub(crate) fn terms(&self, class: Class) -> Terms {
        Terms {
            deadline: self.call.deadline.map(Deadline::instant),
            class,
            continues_request: self.batches > 0,
        }
    }

    /// The terms of more work on a batch that was accepted.
    pub(crate) fn terms_to_continue(&self, class: Class) -> Terms {
        Terms {
            continues_request: true,
            ..self.terms(class)
        }
    }

    /// Number of batches that were scored.
    pub(crate) fn batches(&self) -> usize {
        self.batches
    }

    /// Scores of all batches, in the order sent.
    pub(crate) fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The sum over all batches.
    pub(crate) fn reuse(&self) -> Reuse {
        self.reuse
    }

    /// What was unusual about the model, about what the call's predictions rest on, and about its configurations.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        // Each warning is given once, with the first answer of a stream that can tell it.
        let mut warnings = take(&mut self.warnings);
        let lesson = self.lesson.as_mut();
        warnings.extend(lesson.map(Lesson::take_warnings).unwrap_or_default());
        warnings.extend(take(&mut self.unscored).map(too_large));
        warnings
    }

    /// Adds what is predicted of some configurations of a batch.
    pub(crate) fn add_sample(&mut self, sample: PredictedList) {
        self.sample.add(sample);
    }

    /// Whether scores are adapted to measurements.
    pub(crate) fn is_adapted(&self) -> bool {
        self.predictor()
            .is_some_and(|predictor| predictor.adapted.is_some())
    }

    /// The unit of scores that are not adapted: what only other kernels or targets say is ln(seconds) up to a common number,
    /// whatever the unit of the model is.
    pub(crate) fn unit(&self) -> ScoreUnit {
        if self.predictor().is_some() {
            ScoreUnit::None
        } else {
            self.model.manifest().unit()
        }
    }

    /// What predicts run times in place of the model, if something was learned.
    pub(super) fn predictor(&self) -> Option<Predictor> {
        self.lesson.as_ref().and_then(Lesson::predictor)
    }

    /// What predictions rest on, if the call sent measurements.
    pub(crate) fn adaptation(&self) -> Option<Adaptation> {
        self.lesson.as_ref().map(Lesson::adaptation)
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

/// Warns about configurations whose kernels are too large.
fn too_large(UnscoredConfigs { count, first }: UnscoredConfigs) -> Warning {
    let message = format!(
        "{count} configurations have an infinite score; configuration {}: {}",
        first.config, first.reason
    );
    Warning {
        reason: "KERNEL_TOO_LARGE",
        message,
    }
}
