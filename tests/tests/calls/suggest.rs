//! A server proposes what to measure next.

use hlorank_client::{SuggestionReason, SuggestionSource, Suggestions};
use hlorank_tests::prelude::*;

fn request<'a>(
    handle: &'a GraphHandle,
    graph: &MeasuredGraph,
    measured: &[usize],
) -> SuggestRequest<'a> {
    SuggestRequest::new(handle, configurations(graph)).adapt(Some(adapt("test", graph, measured)))
}

fn configs(suggestions: &Suggestions) -> Vec<usize> {
    let suggestions = suggestions.suggestions.iter();
    suggestions.map(|each| each.config).collect()
}

/// Measures what is suggested until a configuration is at most 1 % slower than the fastest; returns how many were.
async fn search(client: &Client, graph: &MeasuredGraph) -> usize {
    let handle = GraphHandle::from_measured(graph);
    let times = seconds_of(graph);
    let enough = times.iter().copied().fold(f64::INFINITY, f64::min) * 1.01;
    let mut fastest = f64::INFINITY;
    let mut since_improvement = 0;
    let mut measured = Vec::new();
    while fastest > enough {
        let request = request(&handle, graph, &measured).since_improvement(since_improvement, 1);
        let suggested = client.suggest(&request).await;
        let suggested = suggested.unwrap_or_else(|error| panic!("{}: {error}", graph.name));
        let config = suggested.suggestions[0].config;
        assert!(!measured.contains(&config), "{}: {config}", graph.name);
        measured.push(config);
        since_improvement += 1;
        if times[config] < fastest {
            fastest = times[config];
            since_improvement = 0;
        }
    }
    measured.len()
}

#[tokio::test]
async fn a_search_by_suggestions_finds_a_fast_configuration_soon() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let mut shares = Vec::new();
    for graph in measured_graphs() {
        let found = search(&client, &graph).await;
        let all = configurations(&graph).len();
        println!("{}: found after {found} of {all}", graph.name);
        shares.push(found as f64 / all as f64);
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    // A random order needs about half of them.
    assert!(mean < 0.35, "{shares:?}");
}

#[tokio::test]
async fn before_three_measurements_the_model_decides() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs() {
        let handle = GraphHandle::from_measured(&graph);
        let request = RankRequest::new(&handle, configurations(&graph));
        let ranking = client.rank(&request).await.unwrap();
        let ranked: Vec<usize> = ranking.best.iter().map(|each| each.config).collect();
        let request = || SuggestRequest::new(&handle, configurations(&graph));
        let first = client.suggest(&request().count(3)).await.unwrap();
        assert_eq!(configs(&first), ranked[..3], "{}", graph.name);
        assert_eq!(first.adaptation, None);

        // What is measured, has failed or is pending is left out.
        let measured = part(configurations(&graph), ranked[..2].to_vec());
        let mut outcomes = outcomes(&graph, &ranked[..2]);
        outcomes[0] = MeasuredOutcome::Failed(MeasurementFailure::Compile);
        let adapt = Adapt::new("test").measured(&measured, &outcomes);
        let pending = u32::try_from(ranked[2]).unwrap();
        let request = request().adapt(Some(adapt)).pending(&[pending]).count(2);
        let next = client.suggest(&request).await.unwrap();
        assert_eq!(configs(&next), ranked[3..5], "{}", graph.name);
        for suggestion in &next.suggestions {
            assert_eq!(suggestion.reason, SuggestionReason::Model);
            let predicted = (suggestion.predicted_seconds, suggestion.log_sd);
            assert_eq!(predicted, (0.0, 0.0));
        }
    }
}

#[tokio::test]
async fn suggestions_depend_on_the_set_of_measurements_alone() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let suggest = async |request: SuggestRequest<'_>| client.suggest(&request).await.unwrap();
    for graph in measured_graphs() {
        let name = &graph.name;
        let handle = GraphHandle::from_measured(&graph);
        let all = 0..configurations(&graph).len();
        let mut measured: Vec<usize> = all.step_by(4).take(6).collect();
        let first = suggest(request(&handle, &graph, &measured).count(5)).await;
        measured.reverse();
        let again = suggest(request(&handle, &graph, &measured).count(5)).await;
        assert_eq!(first.suggestions, again.suggestions, "{name}");
        for suggestion in &first.suggestions {
            assert!(!measured.contains(&suggestion.config), "{name}");
            assert!((suggestion.predicted_seconds.ln() - suggestion.score).abs() < 1e-4);
            assert!(suggestion.log_sd > 0.0, "{suggestion:?}");
            assert!(suggestion.expected_improvement >= 0.0, "{suggestion:?}");
        }
        let one = suggest(request(&handle, &graph, &measured)).await;
        assert_eq!(one.suggestions, first.suggestions[..1]);
        // What is pending is like what was suggested before.
        let pending = u32::try_from(one.suggestions[0].config).unwrap();
        let next = suggest(request(&handle, &graph, &measured).pending(&[pending])).await;
        assert_eq!(configs(&next), configs(&first)[1..2], "{name}");
    }
}

#[tokio::test]
async fn after_five_fruitless_measurements_a_configuration_or_combination_is_drawn() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graph_of(Task::Layout);
    let handle = GraphHandle::from_measured(&graph);
    for source in [SuggestionSource::Batch, SuggestionSource::Nodes] {
        let suggest = async |seed| {
            let request = request(&handle, &graph, &[0, 4, 8, 12]).source(source);
            let request = request.since_improvement(5, seed);
            let suggested = client.suggest(&request).await.unwrap();
            (suggested.suggestions[0], suggested.combinations)
        };
        let drawn = suggest(1).await;
        assert_eq!(drawn.0.reason, SuggestionReason::Random);
        assert_eq!(suggest(1).await, drawn);
        let mut seeds = 2..;
        while suggest(seeds.next().unwrap()).await == drawn {}
    }
}

#[tokio::test]
async fn all_that_was_not_measured_is_suggested_once() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graphs().remove(0);
    let handle = GraphHandle::from_measured(&graph);
    let all: Vec<usize> = (0..configurations(&graph).len()).collect();
    let request = |measured: &[usize]| request(&handle, &graph, measured).count(64);
    let suggested = client.suggest(&request(&all[3..])).await.unwrap();
    let mut left = configurations(&graph).batch().distinct().first;
    left.retain(|&first| first < 3);
    let mut configs = configs(&suggested);
    configs.sort_unstable();
    assert_eq!(configs, left);
    let none = client.suggest(&request(&all)).await.unwrap();
    assert_eq!(none.suggestions, []);
}
