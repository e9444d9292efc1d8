mod learn;
mod suggest;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{ConfigurationError, Configurations, EncodedBatch, GraphError, SegmentedGraph};

use super::{
    Adaptation, Call, Deadline, SessionError, Sessions,
    adapt::{self, Learned, Scored, Taught},
    partial::score_in_time,
    sessions::{FoundGraph, SelectedModel},
};
use crate::{
    compute::{Class, Computed},
    engine::{BatchPart, Terms, rank},
    graphs::Warning,
    metrics::ModelSeries,
    model::{Model, ScoreUnit},
    outcome::{Evaluation, KernelTime, Reuse, Stages, Timings, UnscoredConfigs},
};

/// The session of one call: its graph, its model, and what was scored until now.
pub(crate) struct Session {
    sessions: Sessions,
    call: Call,
    model: Arc<Model>,
    series: Arc<ModelSeries>,
    graph: Arc<SegmentedGraph>,
    /// Maximum number of configurations of all batches.
    max_configs: usize,
    batches: usize,
    scores: Vec<f32>,
    /// What the call's measurements taught, if it sent some.
    learned: Option<Learned>,
    /// What was unusual about it.
    warnings: Vec<Warning>,
    /// Length of the ranking; 0 for all.
    top_k: u32,
    /// The deviation of each score that may be ranked, if they are adapted.
    deviations: Vec<f32>,
    /// Whether the batch is kept after it was scored, for an explanation or an assessment.
    keeps_batch: bool,
    kept_batch: Option<Arc<Configurations>>,
    /// The memory of the batch that is kept.
    kept_bytes: usize,
    reuse: Reuse,
    /// Configurations of all batches that got no score.
    unscored: Option<UnscoredConfigs>,
}

/// What came of one batch.
pub(crate) struct ScoredBatch {
    /// Number of the batch's first configuration in the call.
    pub(crate) first: usize,
    /// The number of configurations that were scored; fewer than were sent if a partial ranking is allowed.
    pub(crate) configs: usize,
    /// How much work was shared, within this batch.
    pub(crate) reuse: Reuse,
    asked: Instant,
    stages: Stages,
}

/// A ranking over all batches.
pub(crate) struct Ranked {
    pub(crate) ranking: Vec<u32>,
    pub(crate) ranking_scores: Vec<f32>,
    /// The score of every configuration.
    pub(crate) scores: Vec<f32>,
    /// The predicted run time of each configuration of the ranking; empty unless scores are adapted.
    pub(crate) predicted_seconds: Vec<f32>,
    /// The deviation of the logarithm of each predicted time.
    pub(crate) log_sd: Vec<f32>,
    /// Time until a worker was free to rank.
    pub(crate) waited: Duration,
}

/// Maximum number of configurations of a small batch: a step of a search has some hundred.
const INTERACTIVE_CONFIGS: usize = 512;

/// Bytes of a configuration beside its rows: its place in the batch, which distinct one it is, where its rows end, its score
/// and its place in the ranking.
pub(super) const CONFIG_BYTES: usize = 56;

impl Session {
    /// Opens the session of a call for a model and a graph. Fails if the nodes of the graph have other columns than the model
    /// takes.
    pub(crate) fn open(
        sessions: &Sessions,
        call: Call,
        model: SelectedModel,
        graph: &FoundGraph,
    ) -> Result<Self, SessionError> {
        let (series, graph) = (model.series, Arc::clone(&graph.graph));
        let model = model.selection.of_graph(graph.hash);
        call.record.answered_by(&model);
        check_columns(&model, &graph)?;
        Ok(Self {
            sessions: sessions.clone(),
            call,
            model,
            series,
            graph,
            max_configs: usize::MAX,
            batches: 0,
            scores: Vec::new(),
            learned: None,
            warnings: Vec::new(),
            top_k: 0,
            deviations: Vec::new(),
            keeps_batch: false,
            kept_batch: None,
            kept_bytes: 0,
            reuse: Reuse::default(),
            unscored: None,
        })
    }

    /// Sets the length of the ranking, 0 for all.
    pub(crate) fn ranking(self, top_k: u32) -> Self {
        Self { top_k, ..self }
    }

    /// Keeps the batch that is scored, for [`Self::explain`] and [`Self::assess`].
    pub(crate) fn keep_batch(&mut self) {
        self.keeps_batch = true;
    }

    /// The bytes of a batch that is kept once it was scored.
    fn bytes_to_keep(&self, batch: &EncodedBatch) -> usize {
        if !self.keeps_batch {
            return 0;
        }
        let limits = &self.sessions.bounds().limits;
        batch.read_bytes(self.graph.slots(), limits)
    }

    /// The batch that was scored, if it is kept.
    pub(super) fn kept_batch(&self) -> Option<&Arc<Configurations>> {
        self.kept_batch.as_ref()
    }

    /// Limits the number of configurations of all batches together.
    pub(crate) fn limited_to(self, max_configs: usize) -> Self {
        Self {
            max_configs,
            ..self
        }
    }

    /// The model version that scores.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn graph(&self) -> &SegmentedGraph {
        &self.graph
    }

    pub(super) fn shared_graph(&self) -> Arc<SegmentedGraph> {
        Arc::clone(&self.graph)
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
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

    /// What was unusual about what the call's predictions rest on, and about its configurations.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        let unscored = self.unscored.take().map(too_large);
        std::mem::take(&mut self.warnings)
            .into_iter()
            .chain(unscored)
            .collect()
    }

    /// Whether scores are adapted to measurements.
    pub(crate) fn is_adapted(&self) -> bool {
        self.taught().is_some_and(|taught| taught.adapted.is_some())
    }

    /// What predictions rest on, if the call sent measurements.
    pub(crate) fn adaptation(&self) -> Option<Adaptation> {
        self.learned
            .as_ref()
            .map(|learned| learned.adaptation(&self.call.client))
    }

    /// Scores the next batch of a stream.
    pub(crate) async fn score(&mut self, batch: EncodedBatch) -> Result<ScoredBatch, SessionError> {
        let asked = Instant::now();
        let (first, field) = (self.scores.len(), batch.field());
        let class = self.accept(&batch, field)?;
        let kept_bytes = self.bytes_to_keep(&batch);
        let (engine, read) = (
            Arc::clone(self.sessions.engine()),
            self.reader(batch, field),
        );
        let terms = self.terms(class);
        engine.check(&self.model, &self.graph, terms)?;
        let own = Arc::clone(&engine);
        let model = Arc::clone(&self.model);
        let graph = Arc::clone(&self.graph);
        let taught = self.taught();
        let top_k = self.top_k;
        let keeps = self.keeps_batch;
        let score = async move {
            let read = own.pool().run(class, move |_| read()).await?;
            let batch = Arc::new(read.value?);
            // Nobody else has a batch that is not kept, so that the engine need not copy it.
            let kept = keeps.then(|| Arc::clone(&batch));
            let predictor = (taught.as_ref(), top_k);
            let scored = adapt::score(&own, (&model, &graph), batch.into(), terms, predictor);
            let mut scored = scored.await?;
            // The time until a worker was free is that of the first task. Later waits count towards their stages.
            scored.evaluation.stages.waited = read.waited;
            Ok::<_, SessionError>((scored, kept))
        };
        let scored = match class {
            Class::Interactive => {
                let Computed {
                    value: mut scored,
                    waited,
                } = engine.pool().drive(score).await?;
                if let Ok((scored, _)) = &mut scored {
                    scored.evaluation.stages.waited += waited;
                }
                scored
            }
            Class::Bulk => score.await,
        };
        let (scored, kept) = scored.map_err(|error| error.numbered_after(first))?;
        self.kept_batch = kept;
        self.kept_bytes = kept_bytes;
        self.deviations.extend(scored.deviations);
        Ok(self.take(scored.evaluation, asked))
    }

    /// The terms of the next batch.
    pub(super) fn terms(&self, class: Class) -> Terms {
        let deadline = self.call.deadline.map(Deadline::instant);
        Terms {
            deadline,
            class,
            continues_request: self.batches > 0,
        }
    }

    fn taught(&self) -> Option<Taught> {
        self.learned.as_ref()?.taught()
    }

    /// Scores the first configurations of a batch, as many as there is time for before the call's deadline. Scores all
    /// if the call has none. Fails if the model needs the whole batch.
    pub(crate) async fn score_in_time(
        &mut self,
        batch: EncodedBatch,
    ) -> Result<ScoredBatch, SessionError> {
        let manifest = self.model.manifest();
        if !manifest.kind().allows_partial() {
            return Err(SessionError::PartialUnsupported {
                model: manifest.name.clone(),
            });
        }
        let Some(deadline) = self.call.deadline else {
            return self.score(batch).await;
        };
        let asked = Instant::now();
        let (sent, field) = (batch.count(), batch.field());
        let class = self.accept(&batch, field)?;
        let kept_bytes = self.bytes_to_keep(&batch);
        let (engine, read) = (
            Arc::clone(self.sessions.engine()),
            self.reader(batch, field),
        );
        let all = Arc::new(engine.pool().run(class, move |_| read()).await?.value?);
        self.kept_batch = self.keeps_batch.then(|| Arc::clone(&all));
        self.kept_bytes = kept_bytes;
        let terms = (deadline, class);
        let taught = (self.taught(), self.top_k);
        let Scored {
            evaluation,
            deviations,
        } = score_in_time(&engine, &self.model, &self.graph, all, terms, taught).await?;
        self.deviations.extend(deviations);
        if evaluation.scores.len() < sent {
            self.series.ranked_in_part();
        }
        Ok(self.take(evaluation, asked))
    }

    /// Number of configuration columns that the model takes, if it names them.
    fn columns(&self) -> Option<usize> {
        Some(
            self.model
                .manifest()
                .features()
                .named()?
                .config_features()
                .len(),
        )
    }

    /// Checks the width of a batch, holds memory for it, and returns its class.
    fn accept(&self, batch: &EncodedBatch, field: &'static str) -> Result<Class, SessionError> {
        if let (Some(found), Some(expected)) = (batch.columns(), self.columns())
            && found != expected
        {
            let source = ConfigurationError::WrongColumns { found, expected };
            return Err(SessionError::Configuration { field, source });
        }
        let (count, limits) = (batch.count(), &self.sessions.bounds().limits);
        let planned = self.graph.rows_per_config() * size_of::<u32>() + CONFIG_BYTES;
        // The engine copies configurations that others use after it.
        let is_shared = self.learned.is_some() || self.keeps_batch;
        let copies = if is_shared { 2 } else { 1 };
        self.call
            .place
            .hold(copies * batch.read_bytes(self.graph.slots(), limits) + count * planned)?;
        Ok(class_of(count))
    }

    /// Returns a function that reads the next batch on a worker.
    fn reader(
        &self,
        encoded: EncodedBatch,
        field: &'static str,
    ) -> impl FnOnce() -> Result<Configurations, SessionError> + Send + 'static {
        let graph = Arc::clone(&self.graph);
        let limits = self.sessions.bounds().limits;
        let first = self.scores.len();
        let batch = self.batches;
        let limit = self.max_configs;
        move || {
            // A test counts these.
            tracing::trace!(field, configs = encoded.count(), "a batch is read");
            let read = encoded.read(graph.task, &graph.configurable, &limits);
            let read = read.and_then(|read| read.check(&graph.whole).map(|()| read));
            let read = read.map_err(|source| SessionError::Configuration { field, source })?;
            match first + read.len() {
                found if found > limit => Err(SessionError::StreamTooLong {
                    batch,
                    found,
                    limit,
                }),
                _ => Ok(read),
            }
        }
    }

    fn take(&mut self, evaluation: Evaluation, asked: Instant) -> ScoredBatch {
        let Evaluation {
            scores,
            reuse,
            unscored,
            stages,
        } = evaluation;
        self.unscored = UnscoredConfigs::joined(self.unscored, unscored, self.scores.len());
        self.series.scored(reuse);
        self.call.record.scored(reuse, asked, &stages);
        let (first, configs) = (self.scores.len(), scores.len());
        self.batches += 1;
        self.reuse += reuse;
        if self.scores.is_empty() {
            self.scores = scores;
        } else {
            self.scores.extend(scores);
        }
        let ranked = self.scores.len() + self.deviations.len();
        let answer = answer_bytes(ranked, self.scores.len());
        self.call.place.hold_only(answer + self.kept_bytes);
        ScoredBatch {
            first,
            configs,
            reuse,
            asked,
            stages,
        }
    }

    /// Ranks everything that was scored.
    pub(crate) async fn rank(&mut self) -> Result<Ranked, SessionError> {
        let (started, scores) = (Instant::now(), std::mem::take(&mut self.scores));
        let (class, deviations) = (class_of(scores.len()), std::mem::take(&mut self.deviations));
        let top_k = self.top_k as usize;
        let rank = move || {
            let ranking = rank(&scores, top_k);
            let ranking_scores: Vec<f32> = ranking
                .iter()
                .map(|&config| scores[config as usize])
                .collect();
            (ranking, ranking_scores, scores)
        };
        let Computed {
            value: (ranking, ranking_scores, scores),
            waited,
        } = match class {
            // Too little to hand to a worker.
            Class::Interactive => Computed {
                value: rank(),
                waited: Duration::ZERO,
            },
            Class::Bulk => {
                self.sessions
                    .engine()
                    .pool()
                    .run(Class::Bulk, move |_| rank())
                    .await?
            }
        };
        self.call.record.ranked(started + waited);
        let (predicted_seconds, log_sd) = match self.model.manifest().unit() {
            ScoreUnit::Seconds if deviations.is_empty() => (ranking_scores.clone(), Vec::new()),
            _ => run_times(&ranking, &ranking_scores, &deviations),
        };
        Ok(Ranked {
            ranking,
            ranking_scores,
            scores,
            predicted_seconds,
            log_sd,
            waited,
        })
    }

    /// Returns the kernels of some configurations of the batch that was kept, and their predicted seconds.
    pub(crate) async fn explain(
        &self,
        configs: &[u32],
    ) -> Result<Vec<Vec<KernelTime>>, SessionError> {
        let unsupported = |why| Err(SessionError::ExplainUnsupported { why });
        if self.graph.whole.program().is_none() {
            return unsupported("only fusions have kernels");
        }
        if self.is_adapted() {
            return unsupported("scores that are adapted to measurements are no sums over kernels");
        }
        let Some(batch) = &self.kept_batch else {
            return Ok(Vec::new());
        };
        let numbers = configs.iter().map(|&config| config as usize).collect();
        let chosen = BatchPart::of_numbers(Arc::clone(batch), numbers);
        let terms = Terms {
            continues_request: true,
            ..self.terms(Class::Interactive)
        };
        let engine = self.sessions.engine();
        let kernels = engine.kernels(&self.model, &self.graph, chosen, terms);
        Ok(kernels.await?)
    }

    /// Records the stage times of an answer with scores.
    pub(crate) fn record_scored(&self, timings: &Timings) {
        self.sessions.metrics().stages.scored(timings);
    }

    /// Records the stage times of an answer with a ranking.
    pub(crate) fn record_ranked(&self, timings: &Timings) {
        self.sessions.metrics().stages.ranked(timings);
    }
}

impl ScoredBatch {
    /// Time of each stage of an answer that is written now.
    pub(crate) fn timings(&self) -> Timings {
        self.stages.timings(self.asked)
    }
}

/// Checks that the nodes of a graph of a feature set have the columns that the model takes.
fn check_columns(model: &Model, graph: &SegmentedGraph) -> Result<(), SessionError> {
    let manifest = model.manifest();
    let (Some(set), Some(graph)) = (manifest.features().named(), graph.whole.feature_graph())
    else {
        return Ok(());
    };
    match (graph.columns(), set.node_features().len()) {
        (found, expected) if found != expected => {
            let (set, model) = (set.name().to_owned(), manifest.name.clone());
            Err(SessionError::Graph(GraphError::WrongColumns {
                found,
                set,
                model,
                expected,
            }))
        }
        _ => Ok(()),
    }
}

/// Returns the predicted run times of ranked configurations, and the deviations of their logarithms, if scores are adapted.
fn run_times(ranking: &[u32], scores: &[f32], deviations: &[f32]) -> (Vec<f32>, Vec<f32>) {
    if deviations.is_empty() {
        return (Vec::new(), Vec::new());
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
    let seconds = scores
        .iter()
        .map(|&score| libm::exp(score.into()) as f32)
        .collect();
    (
        seconds,
        ranking
            .iter()
            .map(|&config| deviations[config as usize])
            .collect(),
    )
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

fn class_of(configs: usize) -> Class {
    if configs > INTERACTIVE_CONFIGS {
        Class::Bulk
    } else {
        Class::Interactive
    }
}

/// Returns the number of bytes of a ranking and of scores, and of the message that holds them.
pub(crate) fn answer_bytes(ranked: usize, scores: usize) -> usize {
    2 * (ranked * (size_of::<u32>() + size_of::<f32>()) + scores * size_of::<f32>())
}
