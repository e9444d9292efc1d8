//! A server searches the combinations of what segments or nodes have.

use hlorank_client::{SuggestionReason, SuggestionSource, Suggestions};
use hlorank_tests::prelude::*;

const SOURCES: [SuggestionSource; 2] = [SuggestionSource::Segments, SuggestionSource::Nodes];

fn layouts(graph: &MeasuredGraph) -> &LayoutBatch {
    let Configurations::Layout(batch) = configurations(graph) else {
        panic!("layouts")
    };
    batch
}

/// Measurements of the first configurations.
fn adapt(graph: &MeasuredGraph, count: usize) -> Adapt {
    hlorank_tests::adapt("test", graph, &(0..count).collect::<Vec<_>>())
}

async fn suggest(
    client: &Client,
    graph: &MeasuredGraph,
    source: SuggestionSource,
    measured: Option<&Adapt>,
) -> Suggestions {
    let handle = GraphHandle::from_measured(graph);
    let request = SuggestRequest::new(&handle, configurations(graph))
        .source(source)
        .count(8)
        .adapt(measured);
    client
        .suggest(&request)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", graph.name))
}

/// Scores of layouts, by themselves.
async fn scores(
    client: &Client,
    graph: &MeasuredGraph,
    layouts: LayoutBatch,
    adapt: Option<Adapt>,
) -> Vec<f32> {
    let (handle, layouts) = (
        GraphHandle::from_measured(graph),
        Configurations::Layout(layouts),
    );
    let request = RankRequest::new(&handle, &layouts)
        .adapt(adapt)
        .with_scores();
    client.rank(&request).await.unwrap().scores
}

/// The entries of a configuration at some slots.
fn at(batch: &LayoutBatch, config: usize, slots: &[usize]) -> Vec<u64> {
    let entries = slots.iter().map(|&slot| batch.entry(config, slot));
    entries
        .flat_map(|entry| entry.numbers().map(u64::from))
        .collect()
}

#[tokio::test]
async fn suggested_combinations_are_scored_exactly_and_no_change_of_a_segment_is_better() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs_of(Task::Layout) {
        let measured = adapt(&graph, 12);
        for (source, measured) in SOURCES
            .into_iter()
            .flat_map(|source| [(source, None), (source, Some(&measured))])
        {
            let suggested = suggest(&client, &graph, source, measured).await;
            let found = suggested.combinations.clone().unwrap();
            assert_eq!((suggested.suggestions.len(), found.len()), (8, 8));
            let again = scores(&client, &graph, found.clone(), measured.cloned()).await;
            for (number, (suggestion, score)) in suggested.suggestions.iter().zip(again).enumerate()
            {
                assert_eq!(
                    (suggestion.config, suggestion.score.to_bits()),
                    (number, score.to_bits())
                );
            }
            if measured.is_none() {
                let sent = scores(&client, &graph, layouts(&graph).clone(), None).await;
                let best = sent.iter().copied().fold(f32::INFINITY, f32::min);
                assert!(
                    suggested.suggestions[0].score <= best,
                    "{}: {source:?}",
                    graph.name
                );
                println!(
                    "{}: {source:?} {} of {best}",
                    graph.name, suggested.suggestions[0].score
                );
                // There may be more changes of nodes than a search tries.
                if source == SuggestionSource::Segments {
                    let places = places(&graph, source);
                    let score = suggested.suggestions[0].score;
                    assert_no_change_is_better(&client, &graph, &places, &found, score).await;
                }
            }
        }
    }
}

/// Changes each segment or node of the first of some configurations to what it has in each configuration of the graph.
async fn assert_no_change_is_better(
    client: &Client,
    graph: &MeasuredGraph,
    places: &[Vec<usize>],
    found: &LayoutBatch,
    score: f32,
) {
    let all = layouts(graph);
    let mut changed = LayoutBatchBuilder::new(all.slots(), Limits::default());
    for slots in places {
        for config in 0..all.len() {
            let mut entries: Vec<_> = (0..all.slots()).map(|slot| found.entry(0, slot)).collect();
            for &slot in slots {
                entries[slot] = all.entry(config, slot);
            }
            changed.push(&entries).unwrap();
        }
    }
    for other in scores(client, graph, changed.build().unwrap(), None).await {
        assert!(
            other >= score,
            "{}: {other} is better than {score}",
            graph.name
        );
    }
}

/// The slots of each segment, or of each node.
fn places(graph: &MeasuredGraph, source: SuggestionSource) -> Vec<Vec<usize>> {
    let cut = SegmentedGraph::new(&graph.graph);
    match source {
        SuggestionSource::Segments => cut.occurrences.into_iter().map(|each| each.slots).collect(),
        _ => (0..cut.slots()).map(|slot| vec![slot]).collect(),
    }
}

#[tokio::test]
async fn a_combination_has_only_what_was_sent() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs_of(Task::Layout) {
        let all = layouts(&graph);
        let measured = adapt(&graph, 12);
        for source in SOURCES {
            let places = places(&graph, source);
            let found = suggest(&client, &graph, source, Some(&measured))
                .await
                .combinations
                .unwrap();
            for (config, slots) in
                (0..found.len()).flat_map(|config| places.iter().map(move |slots| (config, slots)))
            {
                let is_sent =
                    (0..all.len()).any(|sent| at(all, sent, slots) == at(&found, config, slots));
                assert!(
                    is_sent,
                    "{}: {source:?}, suggestion {config}, slots {slots:?}",
                    graph.name
                );
            }
            let every: Vec<usize> = (0..all.slots()).collect();
            let is_measured =
                |config| (0..12).any(|sent| at(all, sent, &every) == at(&found, config, &every));
            assert!(!(0..found.len()).any(is_measured), "{}", graph.name);
        }
    }
}

#[tokio::test]
async fn pending_combinations_are_sent_among_the_candidates() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graphs_of(Task::Layout).next().unwrap();
    let measured = adapt(&graph, 12);
    let first = suggest(&client, &graph, SuggestionSource::Segments, Some(&measured)).await;
    let pending = first.combinations.unwrap().select(&[0]);
    let mut all = LayoutBatchBuilder::new(pending.slots(), Limits::default());
    for batch in [&pending, layouts(&graph)] {
        for config in 0..batch.len() {
            let entries: Vec<_> = (0..batch.slots())
                .map(|slot| batch.entry(config, slot))
                .collect();
            all.push(&entries).unwrap();
        }
    }
    let (handle, candidates) = (
        GraphHandle::from_measured(&graph),
        Configurations::Layout(all.build().unwrap()),
    );
    let request = SuggestRequest::new(&handle, &candidates).source(SuggestionSource::Segments);
    let next = client
        .suggest(&request.adapt(Some(&measured)).count(8).pending(&[0]))
        .await
        .unwrap();
    let every: Vec<usize> = (0..pending.slots()).collect();
    let next = next.combinations.unwrap();
    assert!((0..next.len()).all(|config| at(&next, config, &every) != at(&pending, 0, &every)));
}

#[tokio::test]
async fn after_five_measurements_without_improvement_a_combination_is_drawn() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graphs_of(Task::Layout).next().unwrap();
    let (handle, measured) = (GraphHandle::from_measured(&graph), adapt(&graph, 12));
    let request = |seed| {
        let request =
            SuggestRequest::new(&handle, configurations(&graph)).source(SuggestionSource::Nodes);
        request.adapt(Some(&measured)).since_improvement(5, seed)
    };
    let mut drawn = Vec::new();
    for seed in [1, 1, 2] {
        let suggested = client.suggest(&request(seed)).await.unwrap();
        assert_eq!(suggested.suggestions[0].reason, SuggestionReason::Random);
        drawn.push(suggested.combinations.unwrap());
    }
    assert!(drawn[0] == drawn[1] && drawn[0] != drawn[2]);
}
