//! `RankConfigsStream`: a graph, then batches of configurations one after the other, then the ranking over all.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{Stream, stream};
use hlorank_graph::{SegmentedGraph, form};
use hlorank_proto::v1::{
    self, BatchScores, RankConfigsStarted, RankConfigsStreamRequest, RankConfigsStreamResponse,
    StreamRanking, config_batch::Configs, rank_configs_stream_request::Part,
    rank_configs_stream_response::Part as Answer,
};
use tonic::{Status, Streaming};

use super::{
    Deadline, ServiceError,
    admit_calls::AdmittedCall,
    answer::{answer_bytes, numbered_after, reuse_counts, selector, timings as stage_timings},
    configs_request::{batch_bytes, check_count, class_of, present},
    cost_model::{CostModel, FoundGraph, Ranked},
    graph_request::GraphOrigin,
    transport::explained,
};
use crate::{
    engine::Terms,
    metrics::ModelSeries,
    model::Model,
    outcome::{Evaluation, Reuse, Timings},
    telemetry::CallRecord,
};

/// What a stream answers. Each answer is made when the transport has room for it, and only then is the next
/// message read; dropping the answers stops what has not started.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<RankConfigsStreamResponse, Status>> + Send>>;

/// A stream that was admitted.
pub(super) struct RankStream {
    service: CostModel,
    messages: Streaming<RankConfigsStreamRequest>,
    call: AdmittedCall,
    record: CallRecord,
    deadline: Option<Deadline>,
}

/// How far a stream has come.
enum Stage {
    /// Nothing was read.
    Opened(RankStream),
    /// The graph was found; batches are scored as they come.
    Started(RankStream, Candidates),
    /// The ranking was given.
    Ranked,
}

/// What a stream has scored until now, all of it by one model.
struct Candidates {
    model: Arc<Model>,
    counted: Arc<ModelSeries>,
    graph: Arc<SegmentedGraph>,
    warnings: Vec<v1::Warning>,
    top_k: u32,
    batches: usize,
    scores: Vec<f32>,
    reuse: Reuse,
    started: Instant,
}

impl Stage {
    async fn next(self) -> Result<Option<(RankConfigsStreamResponse, Self)>, Status> {
        let (answer, stage) = match self {
            Self::Opened(mut stream) => {
                let (started, candidates) = stream.start().await?;
                (Answer::Started(started), Self::Started(stream, candidates))
            }
            Self::Started(mut stream, mut candidates) => match stream.batch().await? {
                Some(configs) => {
                    let scores = candidates.score(&stream, configs).await?;
                    (Answer::Scores(scores), Self::Started(stream, candidates))
                }
                None => (Answer::Ranking(candidates.rank(&stream).await?), Self::Ranked),
            },
            Self::Ranked => return Ok(None),
        };
        Ok(Some((RankConfigsStreamResponse { part: Some(answer) }, stage)))
    }
}

impl RankStream {
    pub(super) fn new(
        service: CostModel,
        messages: Streaming<RankConfigsStreamRequest>,
        call: AdmittedCall,
        record: CallRecord,
        deadline: Option<Deadline>,
    ) -> Self {
        Self { service, messages, call, record, deadline }
    }

    pub(super) fn answers(self) -> Answers {
        let deadline = self.deadline;
        let answers: Answers = Box::pin(stream::try_unfold(Stage::Opened(self), Stage::next));
        match deadline {
            Some(deadline) => Box::pin(deadline.end(answers)),
            None => answers,
        }
    }

    /// Reads what the stream is about.
    async fn start(&mut self) -> Result<(RankConfigsStarted, Candidates), Status> {
        let Some(Part::Start(start)) = self.message().await? else {
            let hint = "the first message of a stream gives the graph";
            return Err(ServiceError::Missing { field: "start", hint }.into());
        };
        let started = Instant::now();
        let found = self.service.find(GraphOrigin::read(start.graph, None)?, &self.record).await?;
        let selection = self.service.select(&start.model.unwrap_or_default(), found.graph.task)?;
        let counted = self.service.count_selected(&selection, &self.record);
        let model = selection.of_graph(found.graph.hash);
        self.record.answered_by(&model);
        let featurize = found.featurize;
        let candidates = Candidates::new(model, counted, found, start.top_k, started);
        Ok((candidates.started(featurize), candidates))
    }

    /// Reads the next batch; `None` once the client has closed the stream.
    async fn batch(&mut self) -> Result<Option<Configs>, Status> {
        match self.message().await? {
            None => Ok(None),
            Some(Part::Batch(batch)) => Ok(Some(present(Some(batch))?)),
            Some(Part::Start(_)) => {
                let found = "sent again".to_owned();
                let expected = "one, at the beginning of the stream".to_owned();
                Err(ServiceError::Invalid { field: "start", found, expected }.into())
            }
        }
    }

    async fn message(&mut self) -> Result<Option<Part>, Status> {
        let Some(message) = self.messages.message().await.map_err(explained)? else { return Ok(None) };
        let hint = "set start in the first message of a stream, and batch in every other";
        let part = message.part.ok_or(ServiceError::Missing { field: "part", hint })?;
        Ok(Some(part))
    }
}

impl Candidates {
    fn new(
        model: Arc<Model>,
        counted: Arc<ModelSeries>,
        found: FoundGraph,
        top_k: u32,
        started: Instant,
    ) -> Self {
        Self {
            model,
            counted,
            graph: found.graph,
            warnings: found.warnings.into_iter().map(v1::Warning::from).collect(),
            top_k,
            batches: 0,
            scores: Vec::new(),
            reuse: Reuse::default(),
            started,
        }
    }

    fn started(&self, featurize: Duration) -> RankConfigsStarted {
        RankConfigsStarted {
            model: Some(selector(&self.model)),
            graph_hash: self.graph.hash.0.to_vec().into(),
            warnings: self.warnings.clone(),
            timings: Some(stage_timings(Timings {
                featurize,
                total: self.started.elapsed(),
                ..Timings::default()
            })),
        }
    }

    async fn score(&mut self, stream: &RankStream, configs: Configs) -> Result<BatchScores, ServiceError> {
        let service = &stream.service;
        let started = Instant::now();
        let (batch, first, configs_count) = (self.batches, self.scores.len(), form(&configs).count());
        let refused = move |source| ServiceError::Batch { batch, first, source: Box::new(source) };
        let limits = &service.bounds.limits;
        check_count(&configs, limits).map_err(refused)?;
        stream.call.hold(batch_bytes(&configs, &self.graph, limits))?;
        let (read, limit) = (service.reader(configs, &self.graph), service.bounds.stream_configs as usize);
        let read = move || {
            let configurations = read().map_err(refused)?;
            match first + configurations.len() {
                found if found > limit => Err(ServiceError::StreamTooLong { batch, found, limit }),
                _ => Ok(configurations),
            }
        };
        let (deadline, class) = (stream.deadline.map(Deadline::instant), class_of(configs_count));
        let terms = Terms { deadline, class, goes_on: batch > 0 };
        let evaluation = service.engine.score(&self.model, &self.graph, read, terms).await;
        let evaluation = evaluation.map_err(|error| numbered_after(first, error))?;
        let Evaluation { scores, reuse, stages } = evaluation;
        self.counted.scored(reuse);
        let timings = stages.timings(started);
        service.metrics.stages.scored(&timings);
        self.batches += 1;
        self.scores.extend_from_slice(&scores);
        self.reuse += reuse;
        stream.record.scored(reuse, started, &stages);
        let scored = self.scores.len();
        stream.call.hold_only(answer_bytes(scored, scored));
        Ok(BatchScores {
            // Below the limit, which is one.
            first_config: u32::try_from(first).unwrap_or(u32::MAX),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(reuse)),
            scores,
        })
    }

    async fn rank(self, stream: &RankStream) -> Result<StreamRanking, ServiceError> {
        if self.batches == 0 {
            let hint = "send at least one before closing the stream";
            return Err(ServiceError::Missing { field: "batch", hint });
        }
        let closed = Instant::now();
        let ranked = stream.service.ranked(self.scores, self.top_k).await?;
        stream.record.ranked(closed + ranked.waited);
        let Ranked { ranking, ranking_scores, .. } = ranked.value;
        let total = closed.elapsed();
        let rank = total.saturating_sub(ranked.waited);
        let timings = Timings { queue: ranked.waited, rank, total, ..Timings::default() };
        stream.service.metrics.stages.ranked(&timings);
        Ok(StreamRanking {
            ranking,
            ranking_scores,
            model: Some(selector(&self.model)),
            graph_hash: self.graph.hash.0.to_vec().into(),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(self.reuse)),
            warnings: self.warnings,
        })
    }
}
