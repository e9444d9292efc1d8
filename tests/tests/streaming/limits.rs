//! A batch has the limits of a lone call, and a stream one of its own.

use hlorank_client::{Client, ClientError, Connection, GraphHandle, StreamRequest};
use hlorank_graph::Task;
use hlorank_proto::v1::rank_configs_stream_response::Part as Answer;
use hlorank_tests::{TestServer, module::two_dots};
use tonic::Code;

use crate::{
    call::{batch, exchange, kernel, start, tile_batch, tiles, wide_tiles},
    order::check,
};

#[tokio::test]
async fn a_stream_takes_as_many_configurations_as_its_limit() {
    let server = TestServer::start_with(&["--max-stream-configs=10"]).await;
    for (sizes, taken) in [([4, 5], true), ([4, 6], true), ([4, 7], false)] {
        let messages = [start(kernel())].into_iter().chain(sizes.map(tiles).map(batch)).collect();
        let (answers, refused) = exchange(&server, messages).await;
        assert!(matches!(&answers[1], Answer::Scores(batch) if batch.scores.len() == 4), "{answers:?}");
        assert_eq!(matches!(answers.last(), Some(Answer::Ranking(_))), taken, "{sizes:?}");
        assert_eq!(refused.is_none(), taken, "{sizes:?}");
        if let Some(status) = refused {
            let words = &["batch 1", "11 configurations", "at most 10", "--max-stream-configs"];
            check(&status, Code::InvalidArgument, "STREAM_TOO_LONG", words);
        }
    }
}

#[tokio::test]
async fn a_batch_takes_as_many_configurations_as_a_lone_call() {
    let server = TestServer::start_with(&["--max-configs=5"]).await;
    let (answers, refused) =
        exchange(&server, vec![start(kernel()), batch(tiles(5)), batch(tiles(5)), batch(tiles(6))]).await;
    assert_eq!(answers.len(), 3);
    let words = &["batch 2", "6 configurations", "--max-configs"];
    check(&refused.unwrap(), Code::InvalidArgument, "TOO_MANY_CONFIGS", words);
}

#[tokio::test]
async fn a_message_past_the_limit_is_refused_in_the_middle_of_a_stream() {
    let server = TestServer::start_with(&["--max-message-bytes=10000"]).await;
    let messages = vec![start(kernel()), batch(tiles(10)), batch(wide_tiles(100, 64))];
    let (answers, refused) = exchange(&server, messages).await;
    assert_eq!(answers.len(), 2);
    let words = &["too long", "10000 bytes", "fewer configurations", "--max-message-bytes"];
    check(&refused.unwrap(), Code::ResourceExhausted, "MESSAGE_TOO_LARGE", words);
}

#[tokio::test]
async fn a_batch_that_the_client_cannot_send_leaves_the_stream_going() {
    let server = TestServer::start().await;
    let connection = Connection { message_bytes: 1000, ..Connection::default() };
    let client = Client::connect(server.endpoint(), connection).await.unwrap();
    let graph = GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]);
    let mut stream = client.rank_stream(&StreamRequest::new(&graph)).await.unwrap();
    let error = stream.send(&tile_batch(200)).await.unwrap_err();
    assert!(matches!(error, ClientError::BatchTooLong { found: 1600.., limit: 1000 }), "{error}");
    stream.send(&tile_batch(100)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 100);
}
