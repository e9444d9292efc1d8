//! A server learns from measured run times that a call brings with it.

use hlorank_tests::prelude::*;

#[tokio::test]
async fn no_measurements_change_no_bit() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let today = rank_measured(&client, &graph, None).await;
        for chosen in [&[][..], &some_of(&graph)[..2]] {
            let ranking = rank_measured(&client, &graph, Some(adapt("test", &graph, chosen))).await;
            let bits = |scores: &[f32]| {
                scores
                    .iter()
                    .map(|score| score.to_bits())
                    .collect::<Vec<_>>()
            };
            assert_eq!(bits(&ranking.scores), bits(&today.scores), "{}", graph.name);
            assert_eq!(ranking.best, today.best);
            assert!(ranking.predicted_seconds.is_empty());
            let adaptation = ranking.adaptation.unwrap();
            assert!(!adaptation.adapted && adaptation.measured_configs as usize <= chosen.len());
        }
        assert_eq!(today.adaptation, None);
    }
}

#[tokio::test]
async fn an_adapted_answer_depends_on_the_set_of_measurements_alone() {
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let mut chosen = some_of(&graph);
        let first = rank_measured(&client, &graph, Some(adapt("test", &graph, &chosen))).await;
        chosen.reverse();
        chosen.rotate_left(3);
        let second = rank_measured(&client, &graph, Some(adapt("test", &graph, &chosen))).await;
        assert_eq!(
            (&first.scores, &first.log_sd),
            (&second.scores, &second.log_sd),
            "{}",
            graph.name
        );
        assert_eq!(first.adaptation, second.adaptation);

        let handle = GraphHandle::from_measured(&graph);
        for config in [0, configurations(&graph).len() - 1] {
            let alone = part(configurations(&graph), [config]);
            let request = RankRequest::new(&handle, &alone)
                .with_scores()
                .adapt(Some(adapt("test", &graph, &chosen)));
            assert_eq!(
                client.rank(&request).await.unwrap().scores,
                [first.scores[config]],
                "{}",
                graph.name
            );
        }
    }
}

#[tokio::test]
async fn a_stream_is_adapted_like_a_call() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let chosen = some_of(&graph);
        let at_once = rank_measured(&client, &graph, Some(adapt("test", &graph, &chosen))).await;
        let (handle, count) = (
            GraphHandle::from_measured(&graph),
            configurations(&graph).len(),
        );
        let request = StreamRequest::new(&handle).adapt(Some(adapt("test", &graph, &chosen)));
        let mut stream = client.rank_stream(&request).await.unwrap();
        stream
            .send(&part(configurations(&graph), 0..count / 2))
            .await
            .unwrap();
        stream
            .send(&part(configurations(&graph), count / 2..count))
            .await
            .unwrap();
        let ranking = stream.finish().await.unwrap();
        assert_eq!(ranking.best, at_once.best, "{}", graph.name);
        assert_eq!(ranking.predicted_seconds, at_once.predicted_seconds);
        assert_eq!(
            (ranking.log_sd, ranking.adaptation),
            (at_once.log_sd, at_once.adaptation)
        );
    }
}

#[tokio::test]
async fn predictions_are_seconds_and_say_how_sure_they_are() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let chosen = some_of(&graph);
        let ranking = rank_measured(&client, &graph, Some(adapt("test", &graph, &chosen))).await;
        let adaptation = ranking.adaptation.as_ref().unwrap();
        assert!(adaptation.adapted, "{adaptation:?}");
        assert_eq!(adaptation.target, "test");
        assert!(
            ranking
                .log_sd
                .iter()
                .all(|&deviation| deviation > 0.0 && deviation < 5.0)
        );
        for (ranked, seconds) in ranking.best.iter().zip(&ranking.predicted_seconds) {
            assert!((seconds.ln() - ranked.score).abs() < 1e-4);
        }
    }
}

#[tokio::test]
async fn a_configuration_that_failed_is_ranked_last() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let chosen = some_of(&graph);
        let mut measured = outcomes(&graph, &chosen);
        measured[0] = MeasuredOutcome::Failed(MeasurementFailure::Crash);
        let adapt = Adapt::new("test").measured(&part(configurations(&graph), chosen), &measured);
        let ranking = rank_measured(&client, &graph, Some(adapt)).await;
        let (last, seconds) = (
            ranking.best.last().unwrap(),
            ranking.predicted_seconds.last().unwrap(),
        );
        assert_eq!(
            (last.score, *seconds),
            (f32::MAX, f32::INFINITY),
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn a_whole_graph_model_is_adapted_by_its_scores() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let client = server.client().await;
    for graph in measured_graphs_of(Task::Tile) {
        let graph = &graph;
        let handle = GraphHandle::from_measured(graph);
        let request = RankRequest::new(&handle, configurations(graph)).adapt(Some(adapt(
            "test",
            graph,
            &some_of(graph),
        )));
        let request = request.model(Some("tile-whole-graph".parse().unwrap()));
        let ranking = client.rank(&request).await.unwrap();
        assert!(ranking.adaptation.unwrap().adapted, "{}", graph.name);
    }
}

#[tokio::test]
async fn five_measurements_say_how_far_a_ranking_can_be_trusted_and_three_do_not() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in &measured_graphs() {
        let handle = GraphHandle::from_measured(graph);
        let after = async |measured: &[usize]| {
            let request = RankRequest::new(&handle, configurations(graph))
                .adapt(Some(adapt("test", graph, measured)));
            client.rank(&request).await.unwrap()
        };
        let some = some_of(graph);
        let ranking = after(&some).await;
        assert!(ranking.adaptation.unwrap().learned_configs >= 5);
        let confidence = ranking.confidence.unwrap();
        let tau = confidence.expected_tau.unwrap();
        let [low, high] = [confidence.expected_tau_low, confidence.expected_tau_high];
        assert!(low.unwrap() < tau && tau < high.unwrap(), "{confidence:?}");
        let mut warnings = ranking.warnings.iter();
        let warns = warnings.any(|warning| warning.reason == "RANKING_UNSURE");
        assert_eq!(warns, tau < 0.3, "{}: {confidence:?}", graph.name);
        let few = after(&some[..3]).await.confidence;
        let tau = few.and_then(|confidence| confidence.expected_tau);
        assert_eq!(tau, None, "{}", graph.name);
    }
}
