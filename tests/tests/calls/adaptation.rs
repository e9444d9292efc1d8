//! A server learns from measured run times that a call brings with it.

use hlorank_client::SuggestionReason;
use hlorank_tests::prelude::*;

/// Ranks the measured configurations of a graph by what some of them took.
async fn rank(client: &Client, graph: &MeasuredGraph, measured: &[usize]) -> Ranking {
    rank_measured(client, graph, Some(adapt("test", graph, measured))).await
}

#[tokio::test]
async fn no_measurements_change_no_bit() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let today = rank_measured(&client, &graph, None).await;
        assert_eq!(today.adaptation, None);
        for measured in [&[][..], &some_of(&graph)[..2]] {
            let ranking = rank(&client, &graph, measured).await;
            assert_eq!(bits(&ranking.scores), bits(&today.scores), "{}", graph.name);
            assert_eq!(ranking.best, today.best);
            assert!(ranking.predicted_seconds.is_empty());
            let adaptation = ranking.adaptation.unwrap();
            assert!(!adaptation.adapted);
            assert!(adaptation.measured_configs as usize <= measured.len());
        }
    }
}

#[tokio::test]
async fn an_adapted_answer_depends_on_the_set_of_measurements_alone() {
    let server = TestServer::start_with(&["--embedding-cache-bytes=0"]).await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let mut measured = some_of(&graph);
        let first = rank(&client, &graph, &measured).await;
        measured.reverse();
        measured.rotate_left(3);
        let second = rank(&client, &graph, &measured).await;
        assert_eq!(first.scores, second.scores, "{}", graph.name);
        assert_eq!(first.log_sd, second.log_sd, "{}", graph.name);
        assert_eq!(first.adaptation, second.adaptation);

        let handle = GraphHandle::from_measured(&graph);
        for config in [0, configurations(&graph).len() - 1] {
            let alone = part(configurations(&graph), [config]);
            let request = RankRequest::new(&handle, &alone).with_scores();
            let request = request.adapt(Some(adapt("test", &graph, &measured)));
            let scores = client.rank(&request).await.unwrap().scores;
            assert_eq!(scores, [first.scores[config]], "{}", graph.name);
        }
    }
}

#[tokio::test]
async fn a_stream_is_adapted_like_a_call() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let measured = some_of(&graph);
        let at_once = rank(&client, &graph, &measured).await;
        let handle = GraphHandle::from_measured(&graph);
        let adapt = adapt("test", &graph, &measured);
        let request = StreamRequest::new(&handle).adapt(Some(adapt));
        let mut stream = client.rank_stream(&request).await.unwrap();
        let all: Vec<usize> = (0..configurations(&graph).len()).collect();
        for half in all.chunks(all.len().div_ceil(2)) {
            let batch = configurations(&graph).select(half);
            stream.send(&batch).await.unwrap();
        }
        let ranking = stream.finish().await.unwrap();
        assert_eq!(ranking.best, at_once.best, "{}", graph.name);
        assert_eq!(ranking.predicted_seconds, at_once.predicted_seconds);
        assert_eq!(ranking.log_sd, at_once.log_sd);
        assert_eq!(ranking.adaptation, at_once.adaptation);
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
        assert_eq!(ranking.best.last().unwrap().score, f32::MAX);
        let seconds = ranking.predicted_seconds.last();
        assert_eq!(seconds, Some(&f32::INFINITY), "{}", graph.name);
    }
}

#[tokio::test]
async fn a_whole_graph_model_is_adapted_by_its_scores_and_suggests_too() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let client = server.client().await;
    let model = Some("tile-whole-graph".parse().unwrap());
    for graph in measured_graphs_of(Task::Tile) {
        let handle = GraphHandle::from_measured(&graph);
        let adapt = adapt("test", &graph, &some_of(&graph));
        let request = RankRequest::new(&handle, configurations(&graph)).adapt(Some(&adapt));
        let ranking = client.rank(&request.model(model.clone())).await.unwrap();
        assert!(ranking.adaptation.unwrap().adapted, "{}", graph.name);
        let request = SuggestRequest::new(&handle, configurations(&graph)).adapt(Some(&adapt));
        let suggested = client.suggest(&request.model(model.clone())).await.unwrap();
        let reason = suggested.suggestions[0].reason;
        assert_eq!(reason, SuggestionReason::ExpectedImprovement);
    }
}

#[tokio::test]
async fn predictions_are_seconds_and_say_how_sure_they_are_after_five_measurements() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let some = some_of(&graph);
        let ranking = rank(&client, &graph, &some).await;
        let mut deviations = ranking.log_sd.iter();
        assert!(deviations.all(|&deviation| deviation > 0.0 && deviation < 5.0));
        for (ranked, seconds) in ranking.best.iter().zip(&ranking.predicted_seconds) {
            assert!((seconds.ln() - ranked.score).abs() < 1e-4);
        }
        let warns = reasons(&ranking).contains(&"RANKING_UNSURE");
        let adaptation = ranking.adaptation.unwrap();
        assert!(adaptation.adapted && adaptation.learned_configs >= 5);
        assert_eq!(adaptation.target, "test");
        let confidence = ranking.confidence.unwrap();
        let tau = confidence.expected_tau.unwrap();
        let [low, high] = [confidence.expected_tau_low, confidence.expected_tau_high];
        assert!(low.unwrap() < tau && tau < high.unwrap(), "{confidence:?}");
        assert_eq!(warns, tau < 0.3, "{}: {confidence:?}", graph.name);
        let few = rank(&client, &graph, &some[..3]).await.confidence;
        let tau = few.and_then(|confidence| confidence.expected_tau);
        assert_eq!(tau, None, "{}", graph.name);
    }
}
