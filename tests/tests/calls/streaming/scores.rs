//! Each batch has the scores of a unary call, bit for bit, and the ranking covers all scores of the stream.

use std::ops::Range;

use hlorank_proto::v1::{RankConfigsResponse, rank_configs_stream_response::Part as Answer};
use hlorank_server::engine::rank;
use hlorank_tests::prelude::*;

use crate::streaming::call::{Stream, exchange, kernel, scores, tile_batch, tiles};

/// Ranks all configurations with a unary call.
async fn call(client: &Client, graph: &GraphHandle, configurations: &Configurations) -> Ranking {
    client
        .rank(&RankRequest::new(graph, configurations).with_scores())
        .await
        .unwrap()
}

/// Ranks all configurations with a stream of these batches.
async fn stream(client: &Client, graph: &MeasuredGraph, batches: &[Range<usize>]) -> Ranking {
    let handle = GraphHandle::from_measured(graph);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&handle))
        .await
        .unwrap();
    let mut scores = Vec::new();
    for range in batches {
        stream
            .send(&part(configurations(graph), range.clone()))
            .await
            .unwrap();
        let batch = stream.scores().await.unwrap().unwrap();
        assert_eq!(
            (batch.first, batch.scores.len()),
            (range.start, range.len()),
            "{}",
            graph.name
        );
        assert_eq!(batch.reuse.configs, range.len() as u64);
        scores.extend(batch.scores);
    }
    Ranking {
        scores,
        ..stream.finish().await.unwrap()
    }
}

/// Cuts a batch into ranges of these sizes in turn.
fn cuts(count: usize, sizes: &[usize]) -> Vec<Range<usize>> {
    let (mut ranges, mut start) = (Vec::new(), 0);
    for size in sizes.iter().cycle() {
        if start == count {
            break;
        }
        let end = start.saturating_add(*size).min(count);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Ways to cut a batch: whole, evenly, unevenly, into single configurations.
const SIZES: [&[usize]; 4] = [&[usize::MAX], &[8], &[2, 5, 1], &[1]];

#[tokio::test]
async fn each_batch_has_the_scores_of_a_lone_call_and_the_ranking_is_that_of_all() {
    // Without a cache, every batch is evaluated.
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let (handle, all) = (GraphHandle::from_measured(&graph), configurations(&graph));
        let together = call(&client, &handle, all).await;
        for sizes in SIZES {
            let batches = cuts(all.len(), sizes);
            let mut alone = Vec::new();
            for range in &batches {
                let batch = part(all, range.clone());
                alone.extend(call(&client, &handle, &batch).await.scores);
            }
            let streamed = stream(&client, &graph, &batches).await;
            let what = format!("{}, {sizes:?}", graph.name);
            assert_eq!(bits(&streamed.scores), bits(&alone), "{what}");
            assert_eq!(bits(&streamed.scores), bits(&together.scores), "{what}");
            assert_eq!(streamed.best, together.best, "{what}");
            assert_eq!(
                (&streamed.model, streamed.graph_hash),
                (&together.model, together.graph_hash)
            );
            let timings = streamed.timings;
            assert!(timings.total >= timings.encode + timings.rank, "{what}");
            if batches.len() == 1 {
                assert_eq!(streamed.reuse.segment_rows, together.reuse.segment_rows);
            }
        }
    }
}

#[tokio::test]
async fn every_form_may_come_in_one_stream() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let expected = call(
            &client,
            &GraphHandle::from_measured(&graph),
            configurations(&graph),
        )
        .await
        .scores;
        let forms = forms(configurations(&graph), graph.graph.configurable());
        let count = forms.len();
        let start = stream_start(graph_by_hash(graph.graph.hash().0.to_vec()));
        let messages = [start]
            .into_iter()
            .chain(forms.into_iter().map(stream_batch))
            .collect();
        let (answers, refused) = exchange(&server, messages).await;
        assert!(refused.is_none(), "{refused:?}");
        let (last, answers) = answers.split_last().unwrap();
        let streamed: Vec<f32> = answers[1..].iter().cloned().flat_map(scores).collect();
        assert_eq!(streamed, expected.repeat(count), "{}", graph.name);
        assert_eq!(ranking(last).ranking, rank(&streamed, 0));
    }
}

fn ranking(answer: &Answer) -> &RankConfigsResponse {
    match answer {
        Answer::Ranking(ranking) => ranking,
        other => panic!("{other:?} is not a ranking"),
    }
}

#[tokio::test]
async fn the_top_is_over_the_whole_stream() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let (handle, mut best) = (GraphHandle::from_measured(&graph), Vec::new());
        for top in [0, 3] {
            let mut stream = client
                .rank_stream(&StreamRequest::new(&handle).top(top))
                .await
                .unwrap();
            for range in cuts(configurations(&graph).len(), &[10]) {
                stream
                    .send(&part(configurations(&graph), range))
                    .await
                    .unwrap();
                stream.scores().await.unwrap();
            }
            best.push(stream.finish().await.unwrap().best);
        }
        assert_eq!(best[1], best[0][..3], "{}", graph.name);
    }
}

#[tokio::test]
async fn scores_come_back_while_the_stream_is_open() {
    let server = TestServer::start().await;
    let mut stream = Stream::started(server.channel().await, kernel()).await;
    for size in [1, 5, 64] {
        stream
            .messages
            .send(stream_batch(tiles(size)))
            .await
            .unwrap();
        assert_eq!(scores(stream.next().await.unwrap().unwrap()).len(), size);
    }
    let left = stream.finish().await.unwrap();
    assert_eq!((left.len(), ranking(&left[0]).ranking.len()), (1, 70));
}

#[tokio::test]
async fn a_start_is_answered_with_the_graph_and_the_model() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let models = server.client().await.list_models().await.unwrap();
    for model in models
        .iter()
        .filter(|model| model.task() == hlorank_proto::v1::Task::Tile)
    {
        let wanted = ModelSelector {
            name: model.name.clone(),
            version: model.version,
            ..ModelSelector::default()
        };
        let start = RankConfigsStart {
            graph: Some(kernel()),
            model: Some(wanted.clone()),
            ..Default::default()
        };
        let (answers, refused) = exchange(
            &server,
            vec![stream_start_with(start), stream_batch(tiles(3))],
        )
        .await;
        assert!(refused.is_none(), "{refused:?}");
        let Answer::Started(started) = &answers[0] else {
            panic!("{answers:?}")
        };
        assert_eq!(
            (&started.model, started.graph_hash.len()),
            (&Some(wanted.clone()), 32)
        );
        assert_eq!(
            (&ranking(&answers[2]).model, answers.len()),
            (&Some(wanted), 3)
        );
    }
}

#[tokio::test]
async fn scores_that_were_not_taken_do_not_keep_the_ranking_back() {
    let server = TestServer::start().await;
    let graph = &measured_graphs()[0];
    let client = server.client().await;
    let handle = GraphHandle::from_measured(graph);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&handle))
        .await
        .unwrap();
    assert!(stream.scores().await.unwrap().is_none(), "nothing was sent");
    stream.send(configurations(graph)).await.unwrap();
    stream.send(configurations(graph)).await.unwrap();
    assert_eq!(
        stream.finish().await.unwrap().best.len(),
        2 * configurations(graph).len()
    );
}

#[tokio::test]
async fn a_graph_that_the_server_lost_is_sent_again() {
    let server = TestServer::start_with(&["--graph-cache-bytes=1"]).await;
    let client = server.client().await;
    let graph = &measured_graphs()[0];
    let handle = GraphHandle::from_measured(graph);
    let expected = call(&client, &handle, configurations(graph)).await;
    assert_eq!(
        handle.hash(),
        Some(graph.graph.hash()),
        "the stream starts with the hash"
    );
    let mut stream = client
        .rank_stream(&StreamRequest::new(&handle))
        .await
        .unwrap();
    stream.send(configurations(graph)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best, expected.best);
}

#[tokio::test]
async fn the_client_tells_why_a_stream_was_refused() {
    let server = TestServer::start_with(&["--max-message-bytes=8000"]).await;
    let client = server.client().await;
    let graph = measured_graphs()
        .into_iter()
        .find(|graph| matches!(configurations(graph), Configurations::Tile(_)));
    let handle = GraphHandle::from_measured(&graph.unwrap());
    let mut stream = client
        .rank_stream(&StreamRequest::new(&handle))
        .await
        .unwrap();
    let batch = tile_batch(600);
    stream.send(&batch).await.unwrap();
    stream.send(&batch).await.unwrap();
    assert_eq!(stream.scores().await.unwrap().unwrap().scores.len(), 600);
    let error = stream.scores().await.unwrap_err();
    assert_reason(&error, "STREAM_TOO_LONG");
}

#[tokio::test]
async fn a_batch_that_the_client_cannot_send_leaves_the_stream_going() {
    let server = TestServer::start().await;
    let connection = Connection {
        message_bytes: 1000,
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    let graph = GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let error = stream.send(&tile_batch(200)).await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::BatchTooLong {
                found: 1600..,
                limit: 1000
            }
        ),
        "{error}"
    );
    stream.send(&tile_batch(100)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 100);
}
