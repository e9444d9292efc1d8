//! Limits of the configurations and bytes of a stream.

use hlorank_proto::v1::rank_configs_stream_request::Part;
use hlorank_proto::v1::rank_configs_stream_response::Part as Answer;
use hlorank_tests::prelude::*;

use crate::limits::request::{Past, kernel, tiles, wide_tiles};

fn batch(configs: Configs) -> RankConfigsStreamRequest {
    let batch = ConfigBatch {
        configs: Some(configs),
    };
    RankConfigsStreamRequest {
        part: Some(Part::Batch(batch)),
    }
}

/// Streams these batches of a kernel, and returns the answers and the rejection, if any.
async fn exchange(
    server: &TestServer,
    batches: impl IntoIterator<Item = Configs>,
) -> (Vec<Answer>, Option<Status>) {
    let start = RankConfigsStart {
        graph: Some(kernel()),
        ..RankConfigsStart::default()
    };
    let mut messages = vec![RankConfigsStreamRequest {
        part: Some(Part::Start(start)),
    }];
    messages.extend(batches.into_iter().map(batch));
    let mut service = server.cost_model().await;
    let mut answers = service
        .rank_configs_stream(tokio_stream::iter(messages))
        .await
        .unwrap()
        .into_inner();
    let mut taken = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => taken.push(answer.part.unwrap()),
            Ok(None) => return (taken, None),
            Err(refused) => return (taken, Some(refused)),
        }
    }
}

/// Returns the number of configurations in the final ranking.
fn ranked(answers: &[Answer]) -> Option<usize> {
    match answers.last()? {
        Answer::Ranking(ranking) => Some(ranking.ranking.len()),
        _ => None,
    }
}

#[tokio::test]
async fn configurations_of_a_stream() {
    let server = TestServer::start_with(&["--max-message-bytes=8000"]).await;
    let (answers, refused) = exchange(&server, [400, 600].map(tiles)).await;
    assert_eq!((ranked(&answers), refused.is_none()), (Some(1000), true));
    let (answers, refused) = exchange(&server, [400, 601].map(tiles)).await;
    assert!(
        matches!(&answers[..], [_, Answer::Scores(batch)] if batch.scores.len() == 400),
        "{answers:?}"
    );
    let (refused, past) = (
        refused.unwrap(),
        Past::setting("STREAM_TOO_LONG", "--max-message-bytes", 1001, 1000),
    );
    past.check(&refused);
    says!(refused.message(), "batch 1");
}

#[tokio::test]
async fn configurations_of_a_batch() {
    let server = TestServer::start_with(&["--max-configs=5"]).await;
    let (answers, refused) = exchange(&server, [5, 5].map(tiles)).await;
    assert_eq!((ranked(&answers), refused.is_none()), (Some(10), true));
    let (answers, refused) = exchange(&server, [5, 5, 6].map(tiles)).await;
    assert_eq!(answers.len(), 3);
    let refused = refused.unwrap();
    Past::setting("TOO_MANY_CONFIGS", "--max-configs", 6, 5).check(&refused);
    says!(refused.message(), "batch 2");
}

#[tokio::test]
async fn bytes_of_a_message_in_the_middle_of_a_stream() {
    let wide = || wide_tiles(37, 64);
    let server = TestServer::start_with(&[&format!(
        "--max-message-bytes={}",
        batch(wide()).encoded_len()
    )])
    .await;
    let (answers, refused) = exchange(&server, [tiles(10), wide()]).await;
    assert_eq!((ranked(&answers), refused.is_none()), (Some(47), true));
    let (answers, refused) = exchange(&server, [tiles(10), one_byte_more(wide())]).await;
    assert_eq!(answers.len(), 2);
    let refused = refused.unwrap();
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(
        (refused.code(), info.reason.as_str()),
        (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
    );
    says!(
        refused.message(),
        "too long",
        "fewer configurations",
        "--max-message-bytes"
    );
}

fn one_byte_more(configs: Configs) -> Configs {
    let Configs::PackedTileConfigs(mut packed) = configs else {
        panic!("{configs:?}")
    };
    packed.bounds = [&packed.bounds[..], &[0]].concat().into();
    Configs::PackedTileConfigs(packed)
}
