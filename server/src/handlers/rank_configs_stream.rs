//! `RankConfigsStream`: a graph, then batches of configurations one after the other, then the ranking over all.

use std::{pin::Pin, time::Instant};

use futures::{Stream, stream};
use hlorank_graph::EncodedBatch;
use hlorank_proto::{
    received::{RankConfigsStart, RankConfigsStreamRequest, rank_configs_stream_request::Part},
    v1::{
        BatchScores, RankConfigsResponse, RankConfigsStarted, RankConfigsStreamResponse,
        rank_configs_stream_response::Part as Answer,
    },
};
use tonic::{Status, Streaming};

use super::{
    CostModel,
    answer::{count, ranking_answer, reuse_counts, selector, stage_timings, unit_of, warnings},
};
use crate::{
    call::{Call, CallError, Position},
    errors::ServiceError,
    layers::{end_at, explained},
    outcome::Timings,
    queries::{Query, ScoredCall, Scoring},
};

/// The answers of a stream. Each is made when the transport has room for it, and only then is the next message read.
/// Dropping the answers drops the work that has not started.
pub(super) type Answers =
    Pin<Box<dyn Stream<Item = Result<RankConfigsStreamResponse, Status>> + Send>>;

type Messages = Streaming<RankConfigsStreamRequest>;

/// A stream of an admitted call.
pub(super) struct RankStream {
    service: CostModel,
    messages: Messages,
    call: Call,
}

/// How far a stream has come.
enum StreamStage {
    /// Nothing was read.
    Opened(Box<RankStream>),
    /// The graph was found. Batches are scored as they come.
    Started(Box<Batches>),
    /// The ranking was sent.
    Ranked,
}

/// A stream whose graph was found.
struct Batches {
    service: CostModel,
    messages: Messages,
    query: Query,
    /// Length of the ranking; 0 for all.
    top_k: u32,
    /// `None` before the first batch.
    scored: Option<ScoredCall>,
}

impl StreamStage {
    async fn next(self) -> Result<Option<(RankConfigsStreamResponse, Self)>, Status> {
        let (answer, stage) = match self {
            Self::Opened(stream) => {
                let (started, batches) = stream.start().await?;
                (Answer::Started(started), Self::Started(Box::new(batches)))
            }
            Self::Started(mut batches) => match batches.next().await? {
                Some(batch) => {
                    let scores = batches.score(batch).await?;
                    (Answer::Scores(scores), Self::Started(batches))
                }
                None => (Answer::Ranking(batches.rank().await?), Self::Ranked),
            },
            Self::Ranked => return Ok(None),
        };
        let response = RankConfigsStreamResponse { part: Some(answer) };
        Ok(Some((response, stage)))
    }
}

impl RankStream {
    pub(super) fn new(service: CostModel, messages: Messages, call: Call) -> Self {
        Self {
            service,
            messages,
            call,
        }
    }

    pub(super) fn answers(self) -> Answers {
        let deadline = self.call.deadline;
        let opened = StreamStage::Opened(Box::new(self));
        let answers: Answers = Box::pin(stream::try_unfold(opened, StreamStage::next));
        // The layer for deadlines ends a call until its first answer. The stream is then its own.
        match deadline {
            Some(deadline) => Box::pin(end_at(deadline, answers)),
            None => answers,
        }
    }

    /// Reads the first message, and opens the query.
    async fn start(mut self) -> Result<(RankConfigsStarted, Batches), Status> {
        let Some(Part::Start(start)) = message(&mut self.messages).await? else {
            let hint = "the first message of a stream gives the graph";
            return Err(ServiceError::missing("start", hint).into());
        };
        let started = Instant::now();
        let service = self.service;
        let RankConfigsStart {
            graph,
            model,
            adapt,
            top_k,
            ..
        } = start;
        // The configurations, which decide the task elsewhere, are yet to come.
        let query = service.open(graph, model, adapt, None, self.call).await?;
        // All batches stay in memory as scores until the ranking, however small each of them is.
        let query = query.limited_to(service.bounds.stream_configs);
        let timings = Timings {
            featurize: query.found.featurize,
            total: started.elapsed(),
            ..Timings::default()
        };
        let answer = RankConfigsStarted {
            model: Some(selector(&query.model)),
            graph_hash: query.found.graph.hash.0.to_vec().into(),
            warnings: warnings(&query, None),
            timings: Some(stage_timings(timings)),
            unit: unit_of(&query).into(),
        };
        let batches = Batches {
            service,
            messages: self.messages,
            query,
            top_k,
            scored: None,
        };
        Ok((answer, batches))
    }
}

impl Batches {
    /// Reads the next batch; `None` after the client has closed the stream.
    async fn next(&mut self) -> Result<Option<EncodedBatch>, Status> {
        match message(&mut self.messages).await? {
            None => Ok(None),
            Some(Part::Batch(batch)) => {
                let read = self.service.batch(Some(batch)).await;
                Ok(Some(read.map_err(|error| self.in_batch(error))?))
            }
            Some(Part::Start(_)) => {
                let expected = "one, at the beginning of the stream";
                Err(ServiceError::invalid("start", "sent again", expected).into())
            }
        }
    }

    async fn score(&mut self, encoded: EncodedBatch) -> Result<BatchScores, ServiceError> {
        let before = self.end();
        let scoring = Scoring {
            top_k: self.top_k,
            ..Scoring::default()
        };
        let scored = self.query.score(encoded, before, scoring).await;
        let scored = scored.map_err(|error| self.in_batch(error.into()))?;
        let timings = scored.timings();
        self.query.record_scored(&timings);
        let answer = BatchScores {
            // Below the limit on the configurations of a stream, which is a `u32`.
            first_config: count(before.configs),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(scored.reuse())),
            scores: scored.scores().to_vec(),
        };
        match &mut self.scored {
            Some(all) => all.append(scored),
            None => self.scored = Some(scored),
        }
        Ok(answer)
    }

    /// Where the next batch stands.
    fn end(&self) -> Position {
        self.scored
            .as_ref()
            .map(ScoredCall::end)
            .unwrap_or_default()
    }

    /// Names the next batch in an error of its configurations.
    fn in_batch(&self, error: ServiceError) -> ServiceError {
        let before = self.end();
        match error {
            // Other errors, such as a full queue, are not about what the batch has.
            ServiceError::Call(source @ CallError::Configuration { .. }) => ServiceError::Batch {
                batch: before.batches,
                first: before.configs,
                source,
            },
            error => error,
        }
    }

    async fn rank(self) -> Result<RankConfigsResponse, ServiceError> {
        let query = self.query;
        let hint = "send at least one before closing the stream";
        let scored = self.scored.ok_or(ServiceError::missing("batch", hint))?;
        let closed = Instant::now();
        let ranking = query.rank(scored, self.top_k).await?;
        let total = closed.elapsed();
        let timings = Timings {
            queue: ranking.waited,
            rank: total.saturating_sub(ranking.waited),
            total,
            ..Timings::default()
        };
        query.record_ranked(&timings);
        Ok(ranking_answer(&query, ranking, timings, false))
    }
}

async fn message(messages: &mut Messages) -> Result<Option<Part>, Status> {
    let Some(message) = messages.message().await.map_err(explained)? else {
        return Ok(None);
    };
    let hint = "set start in the first message of a stream, and batch in every other";
    let part = message.part;
    Ok(Some(part.ok_or(ServiceError::missing("part", hint))?))
}
