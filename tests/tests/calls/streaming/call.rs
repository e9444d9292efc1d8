//! Streams that are sent message by message, including ones that the client library would not send.

use hlorank_graph::EncodedBatch;
use hlorank_proto::v1::rank_configs_stream_response::Part;
use hlorank_tests::prelude::*;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::limits::request::tiles;

/// Open stream.
pub(crate) struct Stream {
    pub(crate) messages: mpsc::Sender<RankConfigsStreamRequest>,
    answers: Streaming<RankConfigsStreamResponse>,
}

impl Stream {
    pub(crate) async fn open(channel: Channel) -> Result<Self, Status> {
        let (messages, outgoing) = mpsc::channel(1);
        let answers = CostModelServiceClient::new(channel)
            .rank_configs_stream(ReceiverStream::new(outgoing))
            .await?
            .into_inner();
        Ok(Self { messages, answers })
    }

    /// Opens a stream, sends its start, and waits until the server has started it.
    pub(crate) async fn started(channel: Channel, graph: Graph) -> Self {
        let mut stream = Self::open(channel).await.unwrap();
        stream.messages.send(stream_start(graph)).await.unwrap();
        let answer = stream.next().await.unwrap();
        assert!(matches!(answer, Some(Part::Started(_))));
        stream
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Part>, Status> {
        let answer = self.answers.message().await?;
        Ok(answer.map(|answer| answer.part.unwrap()))
    }

    /// Closes the sending side, and returns the remaining answers and the refusal if there is one.
    pub(crate) async fn finish(mut self) -> (Vec<Part>, Option<Status>) {
        drop(self.messages);
        let mut answers = Vec::new();
        loop {
            match self.answers.message().await {
                Ok(Some(answer)) => answers.push(answer.part.unwrap()),
                Ok(None) => return (answers, None),
                Err(refused) => return (answers, Some(refused)),
            }
        }
    }
}

/// Sends all messages and closes the stream. Returns the answers, and the refusal if there is one.
pub(crate) async fn exchange(
    server: &TestServer,
    messages: Vec<RankConfigsStreamRequest>,
) -> (Vec<Part>, Option<Status>) {
    let stream = Stream::open(server.channel().await).await.unwrap();
    for message in messages {
        // An error means that the server has ended the stream.
        let _ = stream.messages.send(message).await;
    }
    stream.finish().await
}

/// Returns [`tiles`] for the client library.
pub(crate) fn tile_batch(count: usize) -> Configurations {
    let batch = EncodedBatch::try_from(&tiles(count)).unwrap();
    batch.read(Task::Tile, &[], &Limits::default()).unwrap()
}

/// Returns the scores of an answer.
pub(crate) fn scores(answer: Part) -> Vec<f32> {
    match answer {
        Part::Scores(batch) => batch.scores,
        other => panic!("{other:?} is not the scores of a batch"),
    }
}
