//! An answer that violates the wire contract is an error that names the server, whatever is wrong with it.

use hlorank_proto::v1::{BatchScores, RankConfigsStarted, rank_configs_stream_response::Part};
use hlorank_tests::prelude::*;

async fn client_of(answers: Answers) -> (AnsweringServer, Client) {
    let server = AnsweringServer::start(answers).await;
    let client = server.client().await;
    (server, client)
}

async fn client_of_ranking(ranking: RankConfigsResponse) -> (AnsweringServer, Client) {
    client_of(Answers {
        ranking,
        ..Answers::default()
    })
    .await
}

/// Checks that an error is about the answer of a server, and contains these words.
fn assert_invalid(server: &AnsweringServer, error: &ClientError, words: &str) {
    assert!(matches!(error, ClientError::Answer { .. }), "{error}");
    let source = format!("invalid answer from the server at {}: ", server.endpoint());
    says!(error.to_string(), source, words);
}

#[tokio::test]
async fn an_impossible_ranking_is_an_error() {
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(2));
    let whole = RankRequest::new(&graph, &tiles);
    let partial = RankRequest::new(&graph, &tiles).allow_partial();
    let scored = RankRequest::new(&graph, &tiles).with_scores();
    let (_server, client) = client_of_ranking(valid_ranking()).await;
    let ranking = client.rank(&whole).await.unwrap();
    assert_eq!((ranking.best[0].config, ranking.scored), (1, 2));

    let with = |ranking: &[u32], scores: &[f32]| RankConfigsResponse {
        ranking: ranking.to_vec(),
        ranking_scores: scores.to_vec(),
        ..valid_ranking()
    };
    let of = |scored_configs| RankConfigsResponse {
        scored_configs,
        ..valid_ranking()
    };
    let of_scores = |scores: &[f32]| RankConfigsResponse {
        scores: scores.to_vec(),
        ..valid_ranking()
    };
    let nameless = RankConfigsResponse {
        model: None,
        ..valid_ranking()
    };
    let short_hash = RankConfigsResponse {
        graph_hash: vec![7; 8].into(),
        ..valid_ranking()
    };
    let cases = [
        (
            &whole,
            with(&[1, 2], &[-1.0, 1.0]),
            "configuration 2, but only 2 were scored",
        ),
        (
            &whole,
            with(&[1, u32::MAX], &[-1.0, 1.0]),
            "configuration 4294967295",
        ),
        (&whole, with(&[1, 1], &[-1.0, 1.0]), "configuration 1 twice"),
        (
            &whole,
            with(&[1, 0], &[-1.0, f32::NAN]),
            "configuration 0 is not a number",
        ),
        (
            &whole,
            with(&[1, 0], &[f32::NEG_INFINITY, 1.0]),
            "configuration 1 is not a number",
        ),
        (
            &whole,
            with(&[0, 1], &[1.0, -1.0]),
            "after one with a higher score",
        ),
        (&whole, with(&[1], &[-1.0]), "1 configurations instead of 2"),
        (
            &whole,
            with(&[1, 0], &[-1.0]),
            "2 configurations, but 1 scores",
        ),
        (&whole, of(0), "0 of 2 configurations"),
        (&whole, of(1), "1 of 2 configurations"),
        (&whole, of_scores(&[1.0, -1.0]), "2 scores instead of 0"),
        (&whole, nameless, "lacks the name of the model"),
        (&whole, short_hash, "8 bytes instead of 32"),
        (&partial, of(0), "0 of 2 configurations"),
        (&partial, of(3), "3 of 2 configurations"),
        (&scored, of_scores(&[1.0]), "1 scores instead of 2"),
        (
            &scored,
            of_scores(&[1.0, f32::NAN]),
            "configuration 1 is not a number",
        ),
        (
            &scored,
            of_scores(&[1.0, -2.0]),
            "configuration 1 has two different scores",
        ),
    ];
    for (request, answer, words) in cases {
        let (server, client) = client_of_ranking(answer).await;
        assert_invalid(&server, &client.rank(request).await.unwrap_err(), words);
    }
}

#[tokio::test]
async fn a_graph_that_is_put_has_a_hash() {
    let (server, client) = client_of(Answers::default()).await;
    let graph = GraphHandle::features(&kernel_of(3));
    let error = client.put_graph(&graph).await.unwrap_err();
    assert_invalid(&server, &error, "the graph hash has 0 bytes instead of 32");
}

fn message(part: Part) -> RankConfigsStreamResponse {
    RankConfigsStreamResponse { part: Some(part) }
}

fn started() -> RankConfigsStreamResponse {
    let RankConfigsResponse {
        model, graph_hash, ..
    } = valid_ranking();
    message(Part::Started(RankConfigsStarted {
        model,
        graph_hash,
        ..RankConfigsStarted::default()
    }))
}

fn scores(first_config: u32, scores: &[f32]) -> RankConfigsStreamResponse {
    message(Part::Scores(BatchScores {
        first_config,
        scores: scores.to_vec(),
        ..BatchScores::default()
    }))
}

fn end(ranking: &[u32], scored_configs: u32) -> RankConfigsStreamResponse {
    message(Part::Ranking(RankConfigsResponse {
        ranking: ranking.to_vec(),
        scored_configs,
        ..valid_ranking()
    }))
}

/// Streams two batches of two tiles and one to a server that answers with the start of a stream and these messages.
async fn stream(
    answers: &[RankConfigsStreamResponse],
) -> (AnsweringServer, Result<Ranking, ClientError>) {
    let (server, client) = client_of(Answers {
        stream: answers.to_vec(),
        ..Answers::default()
    })
    .await;
    let graph = GraphHandle::features(&kernel_of(3));
    let request = StreamRequest::new(&graph).top(2);
    let ended = async {
        let mut stream = client.rank_stream(&request).await?;
        for count in [2, 1] {
            stream.send(&grid_configurations(count)).await?;
            stream.scores().await?;
        }
        stream.finish().await
    };
    (server, ended.await)
}

#[tokio::test]
async fn a_stream_with_an_impossible_answer_is_an_error() {
    let (start, first, second) = (started(), scores(0, &[1.0, -1.0]), scores(2, &[3.0]));
    let after_all = |end| vec![start.clone(), first.clone(), second.clone(), end];
    let after_one = |answer| vec![start.clone(), first.clone(), answer];
    let after_start = |answer| vec![start.clone(), answer];
    let (_server, valid) = stream(&after_all(end(&[1, 0], 3))).await;
    valid.unwrap();
    let cases = [
        (vec![scores(0, &[])], "it is not the start of a stream"),
        (
            after_start(scores(1, &[1.0, -1.0])),
            "begin at configuration 1 instead of 0",
        ),
        (after_start(scores(0, &[1.0])), "1 scores instead of 2"),
        (
            after_one(scores(0, &[1.0])),
            "begin at configuration 0 instead of 2",
        ),
        (
            after_one(scores(2, &[f32::NAN])),
            "configuration 2 is not a number",
        ),
        (
            after_one(end(&[1, 0], 3)),
            "it is not the scores of a batch",
        ),
        (after_all(end(&[1, 3], 3)), "configuration 3, but only 3"),
        (after_all(end(&[1, 1], 3)), "configuration 1 twice"),
        (after_all(end(&[1, 0], 2)), "2 of 3 configurations"),
        (after_one(second.clone()), "ended too early"),
    ];
    for (answers, words) in cases {
        let (server, ended) = stream(&answers).await;
        assert_invalid(&server, &ended.unwrap_err(), words);
    }
}
