//! Batches have the scores of a unary call, bit for bit, and the ranking covers all scores of the stream.

use std::ops::Range;

use hlorank_proto::v1::rank_configs_stream_response::Part;
use hlorank_server::engine::rank;
use hlorank_tests::prelude::*;

use crate::{
    limits::request::{kernel, tiles},
    streaming::call::{exchange, scores, tile_batch},
};

/// Ranks all configurations with a unary call.
async fn call(client: &Client, graph: &GraphHandle, configurations: &Configurations) -> Ranking {
    client
        .rank(&RankRequest::new(graph, configurations).with_scores())
        .await
        .unwrap()
}

/// Ranks all configurations with a stream of these batches, each sent when the one before it has its scores.
async fn stream(client: &Client, graph: &MeasuredGraph, batches: &[Range<usize>]) -> Ranking {
    let handle = GraphHandle::from_measured(graph);
    let request = StreamRequest::new(&handle);
    let mut stream = client.rank_stream(&request).await.unwrap();
    let mut scores = Vec::new();
    for range in batches {
        let sent = part(configurations(graph), range.clone());
        stream.send(&sent).await.unwrap();
        let batch = stream.scores().await.unwrap().unwrap();
        assert_eq!(batch.first, range.start, "{}", graph.name);
        assert_eq!(batch.scores.len(), range.len(), "{}", graph.name);
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
async fn batches_have_the_scores_and_the_ranking_of_one_call_with_all() {
    // Without a cache, every batch is evaluated.
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let (handle, all) = (GraphHandle::from_measured(&graph), configurations(&graph));
        let together = call(&client, &handle, all).await;
        for sizes in SIZES {
            let batches = cuts(all.len(), sizes);
            let streamed = stream(&client, &graph, &batches).await;
            let what = format!("{}, {sizes:?}", graph.name);
            assert_eq!(bits(&streamed.scores), bits(&together.scores), "{what}");
            assert_eq!(streamed.best, together.best, "{what}");
            assert_eq!(streamed.model, together.model);
            assert_eq!(streamed.graph_hash, together.graph_hash);
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
        let (handle, all) = (GraphHandle::from_measured(&graph), configurations(&graph));
        let expected = call(&client, &handle, all).await.scores;
        let mut messages = vec![stream_start(graph_by_hash(graph.graph.hash().0.to_vec()))];
        let forms = forms(all, graph.graph.configurable());
        messages.extend(forms.into_iter().map(stream_batch));
        let count = messages.len() - 1;
        let (mut answers, refused) = exchange(&server, messages).await;
        assert!(refused.is_none(), "{refused:?}");
        let last = answers.pop().unwrap();
        let streamed: Vec<f32> = answers.drain(1..).flat_map(scores).collect();
        assert_eq!(streamed, expected.repeat(count), "{}", graph.name);
        assert_eq!(ranking(&last).ranking, rank(&streamed, 0));
    }
}

fn ranking(answer: &Part) -> &RankConfigsResponse {
    match answer {
        Part::Ranking(ranking) => ranking,
        other => panic!("{other:?} is not a ranking"),
    }
}

#[tokio::test]
async fn the_top_is_over_the_whole_stream() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let (handle, all) = (GraphHandle::from_measured(&graph), configurations(&graph));
        let expected = call(&client, &handle, all).await.best;
        let request = StreamRequest::new(&handle).top(3);
        let mut stream = client.rank_stream(&request).await.unwrap();
        assert!(stream.scores().await.unwrap().is_none(), "nothing was sent");
        for range in cuts(all.len(), &[10]) {
            stream.send(&part(all, range)).await.unwrap();
            stream.scores().await.unwrap();
        }
        let best = stream.finish().await.unwrap().best;
        assert_eq!(best, expected[..3], "{}", graph.name);
    }
}

#[tokio::test]
async fn a_start_is_answered_with_the_graph_and_the_model() {
    let server = TestServer::start().await;
    let start = RankConfigsStart {
        graph: Some(kernel()),
        model: Some(model_named(SMALL_TILE_MODEL)),
        ..Default::default()
    };
    let messages = vec![stream_start_with(start), stream_batch(tiles(3))];
    let (answers, refused) = exchange(&server, messages).await;
    assert!(refused.is_none(), "{refused:?}");
    let [Part::Started(started), Part::Scores(_), end] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(started.graph_hash.len(), 32);
    assert_eq!(started.model.as_ref().unwrap().name, SMALL_TILE_MODEL);
    assert_eq!(ranking(end).model, started.model);
}

#[tokio::test]
async fn a_graph_that_the_server_lost_is_sent_again() {
    let server = TestServer::start_with(&["--graph-cache-bytes=1"]).await;
    let graph = measured_graph_of(Task::Tile);
    let (handle, all) = (GraphHandle::from_measured(&graph), configurations(&graph));
    let client = server.client().await;
    let expected = call(&client, &handle, all).await.best;
    let hash = handle.hash();
    assert!(hash.is_some(), "the stream starts with the hash");
    let request = StreamRequest::new(&handle);
    let mut stream = client.rank_stream(&request).await.unwrap();
    stream.send(all).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best, expected);
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
    let request = StreamRequest::new(&graph);
    let mut stream = client.rank_stream(&request).await.unwrap();
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
