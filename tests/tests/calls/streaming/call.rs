//! Streams that are sent message by message, including ones that the client library would not send.

use hlorank_graph::EncodedBatch;
use hlorank_proto::v1::rank_configs_stream_response::Part as Answer;
use hlorank_tests::prelude::*;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Open stream.
pub(crate) struct Stream {
    pub(crate) messages: mpsc::Sender<RankConfigsStreamRequest>,
    pub(crate) answers: Streaming<RankConfigsStreamResponse>,
}

impl Stream {
    pub(crate) async fn open(channel: Channel) -> Result<Self, Status> {
        let (messages, outgoing) = mpsc::channel(1);
        let mut service =
            CostModelServiceClient::new(channel).max_encoding_message_size(usize::MAX);
        let answers = service
            .rank_configs_stream(ReceiverStream::new(outgoing))
            .await?
            .into_inner();
        Ok(Self { messages, answers })
    }

    /// Opens a stream, sends its start, and waits until the server has started it.
    pub(crate) async fn started(channel: Channel, graph: Graph) -> Self {
        let mut stream = Self::open(channel).await.unwrap();
        stream.messages.send(stream_start(graph)).await.unwrap();
        assert!(matches!(
            stream.next().await.unwrap(),
            Some(Answer::Started(_))
        ));
        stream
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Answer>, Status> {
        Ok(self
            .answers
            .message()
            .await?
            .map(|answer| answer.part.unwrap()))
    }

    /// Closes the sending side, and returns the remaining answers.
    pub(crate) async fn finish(mut self) -> Result<Vec<Answer>, Status> {
        drop(self.messages);
        let mut answers = Vec::new();
        while let Some(answer) = self.answers.message().await? {
            answers.push(answer.part.unwrap());
        }
        Ok(answers)
    }
}

/// Sends all messages and closes the stream. Returns the answers, and the error if there is one.
pub(crate) async fn exchange(
    server: &TestServer,
    messages: Vec<RankConfigsStreamRequest>,
) -> (Vec<Answer>, Option<Status>) {
    let mut service = server.cost_model().await;
    let mut answers = match service
        .rank_configs_stream(tokio_stream::iter(messages))
        .await
    {
        Ok(answers) => answers.into_inner(),
        Err(refused) => return (Vec::new(), Some(refused)),
    };
    let mut taken = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => taken.push(answer.part.unwrap()),
            Ok(None) => return (taken, None),
            Err(refused) => return (taken, Some(refused)),
        }
    }
}

/// Returns a kernel of two dots.
pub(crate) fn kernel() -> Graph {
    kernel_graph(graph_of_module(two_dots()))
}

/// Returns tiles of two dimensions, of which 64 are distinct.
pub(crate) fn tiles(count: usize) -> Configs {
    wide_tiles(count, 2)
}

/// Returns such tiles with this number of dimensions, 4 bytes each.
pub(crate) fn wide_tiles(count: usize, dimensions: usize) -> Configs {
    Configs::PackedTileConfigs(repeated_tiles(count, dimensions))
}

/// Returns the same as [`tiles`], for the client library.
pub(crate) fn tile_batch(count: usize) -> Configurations {
    let batch = EncodedBatch::try_from(&tiles(count)).unwrap();
    batch
        .read(hlorank_graph::Task::Tile, &[], &Limits::default())
        .unwrap()
}

/// Returns the scores of an answer.
pub(crate) fn scores(answer: Answer) -> Vec<f32> {
    match answer {
        Answer::Scores(batch) => batch.scores,
        other => panic!("{other:?} is not the scores of a batch"),
    }
}
