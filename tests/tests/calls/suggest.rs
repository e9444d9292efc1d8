//! A server proposes what to measure next.

use hlorank_client::{SuggestionReason, Suggestions};
use hlorank_tests::prelude::*;

fn request<'a>(
    handle: &'a GraphHandle,
    graph: &MeasuredGraph,
    chosen: &[usize],
) -> SuggestRequest<'a> {
    SuggestRequest::new(handle, configurations(graph)).adapt(Some(&adapt("test", graph, chosen)))
}

fn configs(suggestions: &Suggestions) -> Vec<usize> {
    suggestions
        .suggestions
        .iter()
        .map(|each| each.config)
        .collect()
}

async fn client() -> (TestServer, Client) {
    let server = TestServer::start().await;
    let client = server.client().await;
    (server, client)
}

/// Measures what is suggested until a configuration is at most 1 % slower than the fastest; returns how many were.
async fn search(client: &Client, graph: &MeasuredGraph) -> usize {
    let (handle, times) = (GraphHandle::from_measured(graph), seconds_of(graph));
    let enough = times.iter().copied().fold(f64::INFINITY, f64::min) * 1.01;
    let (mut measured, mut since_improvement, mut fastest) = (Vec::new(), 0, f64::INFINITY);
    while fastest > enough {
        let request = request(&handle, graph, &measured).since_improvement(since_improvement, 1);
        let suggested = client
            .suggest(&request)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", graph.name));
        let config = suggested.suggestions[0].config;
        assert!(
            !measured.contains(&config),
            "{}: {config} was measured",
            graph.name
        );
        measured.push(config);
        since_improvement = if times[config] < fastest {
            0
        } else {
            since_improvement + 1
        };
        fastest = fastest.min(times[config]);
    }
    measured.len()
}

#[tokio::test]
async fn a_search_by_suggestions_finds_a_fast_configuration_soon() {
    let (_server, client) = client().await;
    let mut shares = Vec::new();
    for graph in measured_graphs() {
        let (found, all) = (search(&client, &graph).await, configurations(&graph).len());
        println!("{}: found after {found} of {all}", graph.name);
        #[expect(clippy::cast_precision_loss, reason = "few configurations")]
        shares.push(found as f64 / all as f64);
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(
        mean < 0.35,
        "a random order needs about half of them: {shares:?}"
    );
}

#[tokio::test]
async fn before_three_measurements_the_model_decides() {
    let (_server, client) = client().await;
    for graph in measured_graphs() {
        let handle = GraphHandle::from_measured(&graph);
        let ranking = client
            .rank(&RankRequest::new(&handle, configurations(&graph)))
            .await
            .unwrap();
        let ranked: Vec<usize> = ranking.best.iter().map(|each| each.config).collect();
        let none = client
            .suggest(&SuggestRequest::new(&handle, configurations(&graph)).count(3))
            .await
            .unwrap();
        assert_eq!(configs(&none), ranked[..3], "{}", graph.name);
        assert_eq!(none.adaptation, None);
        let two = client
            .suggest(
                &request(&handle, &graph, &ranked[..2])
                    .count(2)
                    .pending(&[u32::try_from(ranked[2]).unwrap()]),
            )
            .await;
        let two = two.unwrap();
        assert_eq!(
            configs(&two),
            ranked[3..5],
            "{}: what is measured or pending is left out",
            graph.name
        );
        for suggestion in &two.suggestions {
            assert_eq!(suggestion.reason, SuggestionReason::Model);
            assert_eq!(
                (suggestion.predicted_seconds, suggestion.log_sd),
                (0.0, 0.0)
            );
        }
    }
}

#[tokio::test]
async fn suggestions_depend_on_the_set_of_measurements_alone() {
    let (_server, client) = client().await;
    for graph in measured_graphs() {
        let handle = GraphHandle::from_measured(&graph);
        let mut measured: Vec<usize> = (0..configurations(&graph).len())
            .step_by(4)
            .take(6)
            .collect();
        let first = client
            .suggest(&request(&handle, &graph, &measured).count(5))
            .await
            .unwrap();
        measured.reverse();
        let again = client
            .suggest(&request(&handle, &graph, &measured).count(5))
            .await
            .unwrap();
        assert_eq!(first.suggestions, again.suggestions, "{}", graph.name);
        for suggestion in &first.suggestions {
            assert!(!measured.contains(&suggestion.config));
            assert!((suggestion.predicted_seconds.ln() - suggestion.score).abs() < 1e-4);
            assert!(
                suggestion.log_sd > 0.0 && suggestion.expected_improvement >= 0.0,
                "{suggestion:?}"
            );
        }
        let one = client
            .suggest(&request(&handle, &graph, &measured))
            .await
            .unwrap();
        assert_eq!(one.suggestions, first.suggestions[..1]);
        let pending: Vec<u32> = configs(&one)
            .iter()
            .map(|&config| u32::try_from(config).unwrap())
            .collect();
        let next = client
            .suggest(&request(&handle, &graph, &measured).pending(&pending))
            .await
            .unwrap();
        assert_eq!(
            configs(&next),
            configs(&first)[1..2],
            "{}: pending is like suggested before",
            graph.name
        );
    }
}

#[tokio::test]
async fn after_five_fruitless_measurements_one_is_random() {
    let (_server, client) = client().await;
    let graph = measured_graphs().remove(0);
    let handle = GraphHandle::from_measured(&graph);
    let suggest = async |seed| {
        let request = request(&handle, &graph, &[0, 4, 8, 12]).since_improvement(5, seed);
        client.suggest(&request).await.unwrap().suggestions[0]
    };
    let first = suggest(1).await;
    assert_eq!(first.reason, SuggestionReason::Random);
    assert_eq!(suggest(1).await, first);
    let mut seeds = 2..;
    while suggest(seeds.next().unwrap()).await.config == first.config {}
}

#[tokio::test]
async fn all_that_was_not_measured_is_suggested_once() {
    let (_server, client) = client().await;
    let graph = measured_graphs().remove(0);
    let (handle, all) = (
        GraphHandle::from_measured(&graph),
        configurations(&graph).len(),
    );
    let measured: Vec<usize> = (3..all).collect();
    let suggested = client
        .suggest(&request(&handle, &graph, &measured).count(64))
        .await
        .unwrap();
    let mut configs = configs(&suggested);
    configs.sort_unstable();
    let left: Vec<usize> = configurations(&graph)
        .batch()
        .distinct()
        .first
        .into_iter()
        .filter(|&first| first < 3)
        .collect();
    assert_eq!(configs, left);
    let everything: Vec<usize> = (0..all).collect();
    let none = client
        .suggest(&request(&handle, &graph, &everything))
        .await
        .unwrap();
    assert!(none.suggestions.is_empty());
}

#[tokio::test]
async fn what_failed_is_not_suggested() {
    let (_server, client) = client().await;
    for graph in measured_graphs() {
        let handle = GraphHandle::from_measured(&graph);
        let ranking = client
            .rank(&RankRequest::new(&handle, configurations(&graph)).top(1))
            .await
            .unwrap();
        let first = ranking.best[0].config;
        let failed = MeasuredOutcome::Failed(MeasurementFailure::Compile);
        let adapt = Adapt::new("test").measured(&part(configurations(&graph), [first]), &[failed]);
        let request = SuggestRequest::new(&handle, configurations(&graph)).adapt(Some(&adapt));
        assert_ne!(
            configs(&client.suggest(&request).await.unwrap()),
            [first],
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn a_whole_graph_model_suggests_too() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let client = server.client().await;
    for graph in measured_graphs_of(Task::Tile) {
        let graph = &graph;
        let handle = GraphHandle::from_measured(graph);
        let request =
            request(&handle, graph, &[0, 2, 4, 6]).model(Some("tile-whole-graph".parse().unwrap()));
        let suggested = client.suggest(&request).await.unwrap();
        assert_eq!(
            suggested.suggestions[0].reason,
            SuggestionReason::ExpectedImprovement
        );
    }
}
