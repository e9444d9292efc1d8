use std::{sync::Arc, time::Duration};

use hlorank_graph::Configurations;
use hlorank_proto::v1::{
    self, ConfigBatch, RankConfigsResponse, RankConfigsStart, RankConfigsStarted, RankConfigsStreamRequest,
    RankConfigsStreamResponse, ReuseCounts, StreamRanking, config_batch::Configs,
    rank_configs_stream_request::Part, rank_configs_stream_response::Part as Answer,
};
use prost::Message as _;
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::{
    ClientError, GraphHandle, ModelReference, Ranking, Timings, attempt::Attempt, request::smallest_form,
};

/// A graph whose candidates come in batches.
#[derive(Debug)]
pub struct StreamRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    model: Option<ModelReference>,
    top: u32,
    pub(crate) timeout: Option<Duration>,
}

/// Batches of candidates on their way to a server, and their scores on the way back. Dropping it ends the call.
///
/// The server reads a batch once the scores of the one before have been taken, but for what is on its way (windows
/// of some megabytes). So take scores while you send: where none are taken, [`send`](Self::send) waits in the end,
/// until the stream's deadline or for ever.
#[derive(Debug)]
pub struct RankStream {
    attempt: Arc<Attempt>,
    answers: Streaming<RankConfigsStreamResponse>,
    batches: mpsc::Sender<RankConfigsStreamRequest>,
    message_bytes: usize,
    model: ModelReference,
    /// Batches that were sent and whose scores were not taken.
    unscored: usize,
    /// The deadline was told.
    is_late: bool,
    timings: Timings,
}

/// The scores of one batch of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchScores {
    /// Number of the batch's first candidate in the stream.
    pub first: usize,
    /// The score of every candidate of the batch in the order sent. Lower is predicted faster; comparable with
    /// the scores of the stream's other batches.
    pub scores: Vec<f32>,
    /// Where the time went on the server, for this batch.
    pub timings: Timings,
    /// How much work was shared within this batch.
    pub reuse: ReuseCounts,
}

/// Batches on their way whose scores are not waited for, so that one is read while another is scored.
const BATCHES_AHEAD: usize = 1;

/// Batches that wait to be sent.
const WAITING_BATCHES: usize = 1;

impl<'a> StreamRequest<'a> {
    /// Asks for the whole ranking, by the default model of the task.
    #[must_use]
    pub fn new(graph: &'a GraphHandle) -> Self {
        Self { graph, model: None, top: 0, timeout: None }
    }

    /// Asks this model.
    #[must_use]
    pub fn model(self, model: Option<ModelReference>) -> Self {
        Self { model, ..self }
    }

    /// Asks for only so many of the best; 0 for all, the default.
    #[must_use]
    pub fn top(self, top: u32) -> Self {
        Self { top, ..self }
    }

    /// Allows the stream so long, from its start to its ranking; without it, as long as it takes.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The message that starts a stream.
    pub(crate) fn message(&self, graph: v1::Graph) -> RankConfigsStreamRequest {
        let model = self.model.as_ref().map(Into::into);
        let start = RankConfigsStart { graph: Some(graph), model, top_k: self.top };
        RankConfigsStreamRequest { part: Some(Part::Start(start)) }
    }
}

/// The sending half of a stream, its first message already sent, and what the transport sends.
pub(crate) fn outgoing(
    start: RankConfigsStreamRequest,
) -> (mpsc::Sender<RankConfigsStreamRequest>, mpsc::Receiver<RankConfigsStreamRequest>) {
    let (sender, receiver) = mpsc::channel(WAITING_BATCHES);
    // There is room for one.
    let _ = sender.try_send(start);
    (sender, receiver)
}

impl RankStream {
    /// Waits until the server has found the graph, which then learns its hash.
    pub(crate) async fn open(
        attempt: Arc<Attempt>,
        graph: &GraphHandle,
        batches: mpsc::Sender<RankConfigsStreamRequest>,
        mut answers: Streaming<RankConfigsStreamResponse>,
        message_bytes: usize,
    ) -> Result<Self, ClientError> {
        let Answer::Started(started) = next_answer(&attempt, &mut answers).await? else {
            return Err(ClientError::Answer("the stream did not start"));
        };
        let RankConfigsStarted { model, graph_hash, timings, .. } = started;
        graph.set_hash(crate::ranking::graph_hash(&graph_hash)?);
        Ok(Self {
            attempt,
            answers,
            batches,
            message_bytes,
            model: model.ok_or(ClientError::Answer("it does not name its model"))?.into(),
            unscored: 0,
            is_late: false,
            timings: timings.map(Timings::from).unwrap_or_default(),
        })
    }

    /// Who scores.
    #[must_use]
    pub fn model(&self) -> &ModelReference {
        &self.model
    }

    /// Sends a batch; waits while the one before has not left. One that is too long for a message is refused here,
    /// and the stream goes on.
    pub async fn send(&mut self, configurations: &Configurations) -> Result<(), ClientError> {
        self.send_configs(smallest_form(configurations)).await
    }

    /// Sends a batch as it is on the wire.
    pub(crate) async fn send_configs(&mut self, configs: Configs) -> Result<(), ClientError> {
        let batch = ConfigBatch { configs: Some(configs) };
        let message = RankConfigsStreamRequest { part: Some(Part::Batch(batch)) };
        let (found, limit) = (message.encoded_len(), self.message_bytes);
        if found > limit {
            return Err(ClientError::BatchTooLong { found, limit });
        }
        if self.attempt.within(self.batches.send(message)).await?.is_err() {
            return Err(self.refusal().await);
        }
        self.unscored += 1;
        Ok(())
    }

    /// Sends batches, taking scores meanwhile, and takes the ranking.
    pub(crate) async fn rank_all(mut self, batches: Vec<Configs>) -> Result<Ranking, ClientError> {
        for batch in batches {
            self.send_configs(batch).await?;
            if self.unscored > BATCHES_AHEAD {
                self.scores().await?;
            }
        }
        self.finish().await
    }

    /// Takes the scores of the earliest batch that has not had them taken, once they are there; `None` where
    /// every batch that was sent has.
    pub async fn scores(&mut self) -> Result<Option<BatchScores>, ClientError> {
        if self.unscored == 0 {
            return Ok(None);
        }
        let Answer::Scores(batch) = self.next_answer().await? else {
            return Err(ClientError::Answer("it is not the scores of a batch"));
        };
        let batch = BatchScores::from(batch);
        self.unscored -= 1;
        self.timings += batch.timings;
        Ok(Some(batch))
    }

    /// Closes the stream and takes the ranking over everything that was sent. Scores that were not taken are lost.
    ///
    /// `scores` of the ranking is empty; `timings` and `reuse` are sums over the whole stream.
    pub async fn finish(mut self) -> Result<Ranking, ClientError> {
        // Closes the stream once all that was sent has left.
        self.batches = mpsc::channel(1).0;
        while self.scores().await?.is_some() {}
        let Answer::Ranking(ranking) = self.next_answer().await? else {
            return Err(ClientError::Answer("it is not a ranking"));
        };
        // Until the end, so that the call is not cancelled.
        self.attempt.answer(self.answers.message()).await?;
        let mut ranking = Ranking::try_from(ranking)?;
        ranking.timings += self.timings;
        Ok(ranking)
    }

    /// Once the deadline was told, nothing comes any more, and that is why.
    async fn next_answer(&mut self) -> Result<Answer, ClientError> {
        let answer = next_answer(&self.attempt, &mut self.answers).await;
        match answer {
            Err(ClientError::Answer(_)) if self.is_late => return Err(self.attempt.expired()),
            Err(ClientError::Deadline { .. }) => self.is_late = true,
            _ => {}
        }
        answer
    }

    /// Why the server takes no more batches.
    async fn refusal(&mut self) -> ClientError {
        loop {
            if let Err(error) = self.next_answer().await {
                return error;
            }
        }
    }
}

async fn next_answer(
    attempt: &Attempt,
    answers: &mut Streaming<RankConfigsStreamResponse>,
) -> Result<Answer, ClientError> {
    let answer = attempt.answer(answers.message()).await?.and_then(|answer| answer.part);
    answer.ok_or(ClientError::Answer("the stream ended too early"))
}

impl From<v1::BatchScores> for BatchScores {
    fn from(batch: v1::BatchScores) -> Self {
        Self {
            first: batch.first_config as usize,
            scores: batch.scores,
            timings: batch.timings.map(Timings::from).unwrap_or_default(),
            reuse: batch.reuse.unwrap_or_default(),
        }
    }
}

impl TryFrom<StreamRanking> for Ranking {
    type Error = ClientError;

    fn try_from(answer: StreamRanking) -> Result<Self, ClientError> {
        let scored = answer.reuse.as_ref().map_or(0, |reuse| reuse.configs);
        Self::try_from(RankConfigsResponse {
            ranking: answer.ranking,
            ranking_scores: answer.ranking_scores,
            scores: Vec::new(),
            model: answer.model,
            graph_hash: answer.graph_hash,
            timings: answer.timings,
            reuse: answer.reuse,
            warnings: answer.warnings,
            // At most --max-stream-configs, which is one.
            scored_configs: u32::try_from(scored).unwrap_or(u32::MAX),
        })
    }
}
