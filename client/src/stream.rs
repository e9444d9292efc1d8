use std::{collections::VecDeque, sync::Arc, time::Duration};

use hlorank_graph::Configurations;
use hlorank_proto::v1::{
    self, ConfigBatch, RankConfigsStart, RankConfigsStreamRequest, RankConfigsStreamResponse,
    ReuseCounts, rank_configs_stream_request::Part, rank_configs_stream_response::Part as Answer,
};
use prost::Message as _;
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::{
    ClientError, GraphHandle, ModelReference, Ranking, Timings,
    answer::{self, ExpectedAnswer, check_scores, invalid},
    calls::Attempt,
};

/// A request to rank configurations of a graph that are sent in batches.
#[derive(Debug)]
pub struct StreamRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    /// Without its graph.
    pub(crate) message: RankConfigsStart,
    pub(crate) timeout: Option<Duration>,
}

/// A stream of batches of configurations to a server, and of their scores from the server. Dropping it ends the call.
///
/// Read scores while you send. The server stops reading batches while its scores are not read; once the flow-control
/// windows of some megabytes are full, [`send`](Self::send) waits, if necessary until the deadline of the stream.
#[derive(Debug)]
pub struct RankStream {
    attempt: Arc<Attempt>,
    answers: Streaming<RankConfigsStreamResponse>,
    batches: mpsc::Sender<RankConfigsStreamRequest>,
    message_bytes: usize,
    model: ModelReference,
    /// Maximum length of the ranking; 0 for all.
    top: u32,
    /// Number of configurations of each batch that was sent and whose scores were not read.
    unscored: VecDeque<usize>,
    /// Number of configurations whose scores were read.
    scored: usize,
    /// Whether an error has reported the deadline.
    is_late: bool,
    timings: Timings,
}

/// The scores of one batch of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchScores {
    /// Number of the first configuration of the batch in the stream.
    pub first: usize,
    /// Score of every configuration of the batch in the order sent. Lower is predicted faster. Comparable with the
    /// scores of the other batches of the stream.
    pub scores: Vec<f32>,
    /// Time of each stage on the server for this batch.
    pub timings: Timings,
    /// How much work was shared within this batch.
    pub reuse: ReuseCounts,
}

/// Maximum number of batches queued to be sent.
const QUEUED_BATCHES: usize = 1;

impl<'a> StreamRequest<'a> {
    /// Requests the whole ranking by the default model of the task.
    #[must_use]
    pub fn new(graph: &'a GraphHandle) -> Self {
        Self {
            graph,
            message: RankConfigsStart::default(),
            timeout: None,
        }
    }

    /// Sets the number of best configurations to return. Default: 0, which returns all.
    #[must_use]
    pub fn top(mut self, top: u32) -> Self {
        self.message.top_k = top;
        self
    }

    /// Returns the message that starts the stream.
    pub(crate) fn message(&self, graph: v1::Graph) -> RankConfigsStreamRequest {
        let start = RankConfigsStart {
            graph: Some(graph),
            ..self.message.clone()
        };
        RankConfigsStreamRequest {
            part: Some(Part::Start(start)),
        }
    }
}

/// Returns the channel from which the transport sends. The first message is already queued.
pub(crate) fn outgoing(
    start: RankConfigsStreamRequest,
) -> (
    mpsc::Sender<RankConfigsStreamRequest>,
    mpsc::Receiver<RankConfigsStreamRequest>,
) {
    // A short queue makes `send` wait for the server, instead of holding every batch in memory.
    let (sender, receiver) = mpsc::channel(QUEUED_BATCHES);
    // The empty channel has room for the message.
    let _ = sender.try_send(start);
    (sender, receiver)
}

impl RankStream {
    /// Waits until the server has found the graph, and keeps the hash of the graph.
    pub(crate) async fn open(
        attempt: Arc<Attempt>,
        request: &StreamRequest<'_>,
        batches: mpsc::Sender<RankConfigsStreamRequest>,
        mut answers: Streaming<RankConfigsStreamResponse>,
        message_bytes: usize,
    ) -> Result<Self, ClientError> {
        let Answer::Started(mut started) = next_answer(&attempt, &mut answers).await? else {
            return Err(attempt.violated("it is not the start of a stream"));
        };
        let needs_model = request.graph.needs_model();
        let model = answer::model(started.model.take(), needs_model).and_then(|model| {
            // Later calls send this hash instead of the graph.
            request
                .graph
                .set_hash(answer::graph_hash(&started.graph_hash)?);
            Ok(model)
        });
        Ok(Self {
            model: model.map_err(|invalid| attempt.invalid(invalid))?,
            attempt,
            answers,
            batches,
            message_bytes,
            top: request.message.top_k,
            unscored: VecDeque::new(),
            scored: 0,
            is_late: false,
            timings: started.timings.map(Timings::from).unwrap_or_default(),
        })
    }

    /// Returns the model version that scores. It has no name, and is printed as `no model`, if measurements alone score.
    #[must_use]
    pub fn model(&self) -> &ModelReference {
        &self.model
    }

    /// Sends a batch. Waits while the previous batch is queued. Fails if the batch exceeds the maximum message size; the
    /// stream stays open.
    pub async fn send(&mut self, configurations: &Configurations) -> Result<(), ClientError> {
        let batch = ConfigBatch {
            configs: Some(configurations.to_smallest_form()),
        };
        let message = RankConfigsStreamRequest {
            part: Some(Part::Batch(batch)),
        };
        let found = message.encoded_len();
        let limit = self.message_bytes;
        if found > limit {
            return Err(ClientError::BatchTooLong { found, limit });
        }
        let sent = self.attempt.within(self.batches.send(message)).await?;
        // The transport drops the receiver when the server ends the call, and the answers say why.
        if sent.is_err() {
            return Err(self.error().await);
        }
        self.unscored.push_back(configurations.len());
        Ok(())
    }

    /// Waits for the scores of the earliest batch whose scores were not read. Returns `None` if there is no such batch.
    pub async fn scores(&mut self) -> Result<Option<BatchScores>, ClientError> {
        // The batch stays in the queue until its scores are checked, so that none is lost if this
        // future is dropped while it waits.
        let Some(&sent) = self.unscored.front() else {
            return Ok(None);
        };
        let Answer::Scores(batch) = self.next_answer().await? else {
            return Err(self.attempt.violated("it is not the scores of a batch"));
        };
        let batch = BatchScores {
            first: batch.first_config as usize,
            scores: batch.scores,
            timings: batch.timings.map(Timings::from).unwrap_or_default(),
            reuse: batch.reuse.unwrap_or_default(),
        };
        let (found, expected) = (batch.first, self.scored);
        let checked = if found == expected {
            check_scores(&batch.scores, expected, sent)
        } else {
            invalid(format!(
                "the scores of a batch begin at configuration {found} instead of {expected}"
            ))
        };
        checked.map_err(|invalid| self.attempt.invalid(invalid))?;
        self.unscored.pop_front();
        self.scored += sent;
        self.timings += batch.timings;
        Ok(Some(batch))
    }

    /// Closes the stream and returns the ranking of everything that was sent. Scores that were not read are discarded.
    ///
    /// The `scores` of the ranking are empty; its `timings` and `reuse` are sums over the whole stream.
    pub async fn finish(mut self) -> Result<Ranking, ClientError> {
        // Dropping the sender closes the stream after the queued batches.
        self.batches = mpsc::channel(1).0;
        while self.scores().await?.is_some() {}
        let Answer::Ranking(ranking) = self.next_answer().await? else {
            return Err(self.attempt.violated("it is not the ranking of a stream"));
        };
        // Reads to the end of the stream, so that the call is not cancelled.
        self.attempt.answer(self.answers.message()).await?;
        let asked = ExpectedAnswer {
            configs: self.scored,
            top: self.top,
            scores: false,
            partial: false,
            explained: 0,
            // If measurements alone scored the batches, they also rank.
            needs_model: !self.model.name.is_empty(),
        };
        let ranking = Ranking::from_answer(ranking, asked);
        let mut ranking = ranking.map_err(|invalid| self.attempt.invalid(invalid))?;
        ranking.timings += self.timings;
        Ok(ranking)
    }

    /// Waits for the next answer. Once the deadline was reported, a stream that ends early reports it again.
    async fn next_answer(&mut self) -> Result<Answer, ClientError> {
        let answer = next_answer(&self.attempt, &mut self.answers).await;
        match answer {
            Err(ClientError::Answer { .. }) if self.is_late => return Err(self.attempt.expired()),
            Err(ClientError::Deadline { .. }) => self.is_late = true,
            _ => {}
        }
        answer
    }

    /// Waits for the error with which the server ended the stream.
    async fn error(&mut self) -> ClientError {
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
    let answer = attempt
        .answer(answers.message())
        .await?
        .and_then(|answer| answer.part);
    answer.ok_or_else(|| attempt.violated("the stream ended too early"))
}
