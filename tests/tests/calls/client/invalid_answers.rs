//! An answer that violates the wire contract is an error that names the server, whatever is wrong with it.

use hlorank_proto::v1::{
    BatchScores, PutGraphResponse, RankConfigsStarted, rank_configs_stream_response::Part,
};
use hlorank_tests::prelude::*;

async fn client_of(answers: Answers) -> (AnsweringServer, Client) {
    let server = AnsweringServer::start(answers).await;
    let client = server.client().await;
    (server, client)
}

/// Checks that an error is about the answer of a server, and contains these words.
fn assert_invalid(server: &AnsweringServer, error: &ClientError, words: &str) {
    assert!(matches!(error, ClientError::Answer { .. }), "{error}");
    let expected = format!("invalid answer from the server at {}: ", server.endpoint());
    let text = error.to_string();
    assert!(
        text.starts_with(&expected) && text.contains(words),
        "{text}, which lacks {words}"
    );
}

/// Ranks two tiles, and returns the error.
async fn error_of(
    ranking: RankConfigsResponse,
    is_partial: bool,
) -> (AnsweringServer, ClientError) {
    let (server, client) = client_of(Answers {
        ranking,
        ..Answers::default()
    })
    .await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(2));
    let request = RankRequest::new(&graph, &tiles);
    let request = if is_partial {
        request.allow_partial()
    } else {
        request
    };
    let error = client.rank(&request).await.unwrap_err();
    (server, error)
}

#[tokio::test]
async fn a_valid_answer_is_a_ranking() {
    let (_server, client) = client_of(Answers {
        ranking: valid_ranking(),
        ..Answers::default()
    })
    .await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(2));
    let ranking = client
        .rank(&RankRequest::new(&graph, &tiles))
        .await
        .unwrap();
    assert_eq!((ranking.best[0].config, ranking.scored), (1, 2));
}

#[tokio::test]
async fn an_impossible_ranking_is_an_error() {
    let with = |ranking: &[u32], scores: &[f32]| RankConfigsResponse {
        ranking: ranking.to_vec(),
        ranking_scores: scores.to_vec(),
        ..valid_ranking()
    };
    let cases = [
        (
            with(&[1, 2], &[-1.0, 1.0]),
            "configuration 2, but only 2 were scored",
        ),
        (
            with(&[1, u32::MAX], &[-1.0, 1.0]),
            "configuration 4294967295",
        ),
        (with(&[1, 1], &[-1.0, 1.0]), "configuration 1 twice"),
        (
            with(&[1, 0], &[-1.0, f32::NAN]),
            "the score of configuration 0 is not a number",
        ),
        (
            with(&[1, 0], &[f32::NEG_INFINITY, 1.0]),
            "the score of configuration 1 is not a number",
        ),
        (with(&[0, 1], &[1.0, -1.0]), "after one with a higher score"),
        (with(&[1], &[-1.0]), "1 configurations instead of 2"),
        (with(&[1, 0], &[-1.0]), "2 configurations, but 1 scores"),
        (
            RankConfigsResponse {
                scored_configs: 0,
                ..valid_ranking()
            },
            "0 of 2 configurations",
        ),
        (
            RankConfigsResponse {
                scored_configs: 1,
                ..valid_ranking()
            },
            "1 of 2 configurations",
        ),
        (
            RankConfigsResponse {
                scores: vec![1.0, -1.0],
                ..valid_ranking()
            },
            "2 scores instead of 0",
        ),
        (
            RankConfigsResponse {
                model: None,
                ..valid_ranking()
            },
            "lacks the name of the model",
        ),
        (
            RankConfigsResponse {
                graph_hash: vec![7; 8].into(),
                ..valid_ranking()
            },
            "8 bytes instead of 32",
        ),
    ];
    for (answer, words) in cases {
        let (server, error) = error_of(answer, false).await;
        assert_invalid(&server, &error, words);
    }
}

#[tokio::test]
async fn a_partial_ranking_covers_at_least_one_configuration_and_no_more_than_were_sent() {
    for scored_configs in [0, 3] {
        let answer = RankConfigsResponse {
            scored_configs,
            ..valid_ranking()
        };
        let (server, error) = error_of(answer, true).await;
        assert_invalid(
            &server,
            &error,
            &format!("{scored_configs} of 2 configurations"),
        );
    }
}

#[tokio::test]
async fn scores_of_another_number_are_an_error() {
    for (scores, words) in [
        (vec![1.0], "1 scores instead of 2"),
        (
            vec![1.0, f32::NAN],
            "the score of configuration 1 is not a number",
        ),
        (vec![1.0, -2.0], "configuration 1 has two different scores"),
    ] {
        let ranking = RankConfigsResponse {
            scores,
            ..valid_ranking()
        };
        let (server, client) = client_of(Answers {
            ranking,
            ..Answers::default()
        })
        .await;
        let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(2));
        let error = client
            .rank(&RankRequest::new(&graph, &tiles).with_scores())
            .await
            .unwrap_err();
        assert_invalid(&server, &error, words);
    }
}

#[tokio::test]
async fn a_graph_that_is_put_has_a_hash_and_sizes() {
    let answers = Answers {
        graph: PutGraphResponse::default(),
        ..Answers::default()
    };
    let (server, client) = client_of(answers).await;
    let error = client
        .put_graph(&GraphHandle::features(&kernel_of(3)))
        .await
        .unwrap_err();
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

/// Streams two batches of two tiles and one, and returns the error.
async fn stream_error(client: &Client) -> Result<(), ClientError> {
    let graph = GraphHandle::features(&kernel_of(3));
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph).top(2))
        .await?;
    for count in [2, 1] {
        stream.send(&grid_configurations(count)).await?;
        stream.scores().await?;
    }
    stream.finish().await.map(|_| ())
}

#[tokio::test]
async fn a_stream_with_an_impossible_answer_is_an_error() {
    let [first, second] = [scores(0, &[1.0, -1.0]), scores(2, &[3.0])];
    let valid = Answers {
        stream: vec![started(), first.clone(), second.clone(), end(&[1, 0], 3)],
        ..Answers::default()
    };
    let (_server, client) = client_of(valid).await;
    stream_error(&client).await.unwrap();
    let cases = [
        (vec![scores(0, &[])], "it is not the start of a stream"),
        (
            vec![started(), scores(1, &[1.0, -1.0])],
            "begin at configuration 1 instead of 0",
        ),
        (vec![started(), scores(0, &[1.0])], "1 scores instead of 2"),
        (
            vec![started(), first.clone(), scores(0, &[1.0])],
            "begin at configuration 0 instead of 2",
        ),
        (
            vec![started(), first.clone(), scores(2, &[f32::NAN])],
            "configuration 2 is not a number",
        ),
        (
            vec![started(), first.clone(), end(&[1, 0], 3)],
            "it is not the scores of a batch",
        ),
        (
            vec![started(), first.clone(), second.clone(), end(&[1, 3], 3)],
            "configuration 3, but only 3",
        ),
        (
            vec![started(), first.clone(), second.clone(), end(&[1, 1], 3)],
            "configuration 1 twice",
        ),
        (
            vec![started(), first.clone(), second.clone(), end(&[1, 0], 2)],
            "2 of 3 configurations",
        ),
        (vec![started(), first, second], "ended too early"),
    ];
    for (stream, words) in cases {
        let (server, client) = client_of(Answers {
            stream,
            ..Answers::default()
        })
        .await;
        assert_invalid(&server, &stream_error(&client).await.unwrap_err(), words);
    }
}
