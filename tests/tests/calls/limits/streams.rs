//! Limits of the configurations and bytes of a stream.

use hlorank_proto::v1::rank_configs_stream_response::Part;
use hlorank_tests::prelude::*;

use crate::{
    limits::request::{Past, kernel, tiles, wide_tiles},
    streaming::call::exchange,
};

/// Streams these batches of a kernel, and returns the answers and the rejection, if any.
async fn stream(
    server: &TestServer,
    batches: impl IntoIterator<Item = Configs>,
) -> (Vec<Part>, Option<Status>) {
    let mut messages = vec![stream_start(kernel())];
    messages.extend(batches.into_iter().map(stream_batch));
    exchange(server, messages).await
}

/// Asserts that batches are accepted and their configurations ranked.
async fn take(server: &TestServer, batches: [Configs; 2], configs: usize) {
    let (answers, refused) = stream(server, batches).await;
    assert!(refused.is_none(), "{refused:?}");
    assert!(
        matches!(answers.last(), Some(Part::Ranking(ranking)) if ranking.ranking.len() == configs),
        "{answers:?}"
    );
}

#[tokio::test]
async fn configurations_of_a_stream() {
    let server = TestServer::start_with(&["--max-message-bytes=8000"]).await;
    take(&server, [400, 600].map(tiles), 1000).await;
    let (answers, refused) = stream(&server, [400, 601].map(tiles)).await;
    assert!(
        matches!(&answers[..], [_, Part::Scores(batch)] if batch.scores.len() == 400),
        "{answers:?}"
    );
    Past::setting("STREAM_TOO_LONG", "--max-message-bytes", 1001, 1000)
        .saying("batch 1")
        .check(&refused.unwrap());
}

#[tokio::test]
async fn bytes_of_a_message_in_the_middle_of_a_stream() {
    let bytes = stream_batch(wide_tiles(37, 64)).encoded_len();
    let server = TestServer::start_with(&[&format!("--max-message-bytes={bytes}")]).await;
    take(&server, [tiles(10), wide_tiles(37, 64)], 47).await;
    let mut packed = repeated_tiles(37, 64);
    packed.bounds = [&packed.bounds[..], &[0]].concat().into();
    let longer = [tiles(10), Configs::PackedTileConfigs(packed)];
    let (answers, refused) = stream(&server, longer).await;
    assert_eq!(answers.len(), 2);
    Past::setting("MESSAGE_TOO_LARGE", "--max-message-bytes", bytes + 1, bytes)
        .saying("fewer configurations")
        .check(&refused.unwrap());
}
