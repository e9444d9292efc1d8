//! A server searches the combinations of what segments or nodes have.

use hlorank_client::{SuggestionSource, Suggestions};
use hlorank_tests::prelude::*;

const SOURCES: [SuggestionSource; 2] = [SuggestionSource::Segments, SuggestionSource::Nodes];

/// Number of the first configurations of a graph that are measured.
const MEASURED: usize = 12;

fn measured(graph: &MeasuredGraph) -> Adapt {
    adapt("test", graph, &(0..MEASURED).collect::<Vec<_>>())
}

fn layouts(graph: &MeasuredGraph) -> &LayoutBatch {
    let Configurations::Layout(batch) = configurations(graph) else {
        panic!("layouts")
    };
    batch
}

async fn suggest(
    client: &Client,
    graph: &MeasuredGraph,
    source: SuggestionSource,
    measured: Option<&Adapt>,
) -> Suggestions {
    let handle = GraphHandle::from_measured(graph);
    let request = SuggestRequest::new(&handle, configurations(graph)).source(source);
    let suggested = client.suggest(&request.count(8).adapt(measured)).await;
    suggested.unwrap_or_else(|error| panic!("{}: {error}", graph.name))
}

/// Scores of layouts, by themselves.
async fn scores(
    client: &Client,
    graph: &MeasuredGraph,
    layouts: LayoutBatch,
    adapt: Option<&Adapt>,
) -> Vec<f32> {
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, &Configurations::Layout(layouts)).with_scores();
    client.rank(&request.adapt(adapt)).await.unwrap().scores
}

/// The entries of a configuration at some slots.
fn at(batch: &LayoutBatch, config: usize, slots: &[usize]) -> Vec<u64> {
    let entries = slots.iter().map(|&slot| batch.entry(config, slot));
    entries
        .flat_map(|entry| entry.numbers().map(u64::from))
        .collect()
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
async fn combinations_of_what_was_sent_are_scored_exactly_and_no_change_of_a_segment_is_better() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for graph in measured_graphs_of(Task::Layout) {
        let sent = layouts(&graph);
        let sent_scores = scores(&client, &graph, sent.clone(), None).await;
        let best = sent_scores.into_iter().fold(f32::INFINITY, f32::min);
        let measured = measured(&graph);
        for source in SOURCES {
            let case = format!("{}: {source:?}", graph.name);
            let places = places(&graph, source);
            let by_model = suggest(&client, &graph, source, None).await;
            let adapted = suggest(&client, &graph, source, Some(&measured)).await;
            for (suggested, adapt) in [(&by_model, None), (&adapted, Some(&measured))] {
                let found = suggested.combinations.as_ref().unwrap();
                assert_eq!((suggested.suggestions.len(), found.len()), (8, 8));
                let again = scores(&client, &graph, found.clone(), adapt).await;
                let suggestions = suggested.suggestions.iter();
                assert!(suggestions.clone().map(|each| each.config).eq(0..8));
                let suggested: Vec<f32> = suggestions.map(|each| each.score).collect();
                assert_eq!(bits(&suggested), bits(&again), "{case}");
                assert_is_of(sent, found, &places, &case);
            }
            let every: Vec<usize> = (0..sent.slots()).collect();
            let found = adapted.combinations.as_ref().unwrap();
            for config in 0..found.len() {
                let combination = at(found, config, &every);
                let mut measured = (0..MEASURED).map(|number| at(sent, number, &every));
                assert!(!measured.any(|each| each == combination), "{case}");
            }
            let score = by_model.suggestions[0].score;
            println!("{case} {score} of {best}");
            assert!(score <= best, "{case}");
            // There may be more changes of nodes than a search tries.
            if source == SuggestionSource::Segments {
                let found = by_model.combinations.as_ref().unwrap();
                assert_no_change_is_better(&client, &graph, &places, found, score).await;
            }
        }
    }
}

/// Asserts that each place of combinations has what it has in a configuration that was sent.
fn assert_is_of(sent: &LayoutBatch, found: &LayoutBatch, places: &[Vec<usize>], case: &str) {
    for slots in places {
        let known: HashSet<_> = (0..sent.len()).map(|each| at(sent, each, slots)).collect();
        for config in 0..found.len() {
            let is_known = known.contains(&at(found, config, slots));
            assert!(is_known, "{case}, suggestion {config}, slots {slots:?}");
        }
    }
}

/// Changes each segment of the first of some combinations to what it has in each configuration of the graph.
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
        assert!(other >= score, "{}: {other}, not {score}", graph.name);
    }
}

#[tokio::test]
async fn pending_combinations_are_sent_among_the_candidates() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graph_of(Task::Layout);
    let measured = measured(&graph);
    let first = suggest(&client, &graph, SuggestionSource::Segments, Some(&measured)).await;
    let pending = first.combinations.unwrap().select(&[0]);
    let mut all = LayoutBatchBuilder::new(pending.slots(), Limits::default());
    for batch in [&pending, layouts(&graph)] {
        for config in 0..batch.len() {
            let entries = (0..batch.slots()).map(|slot| batch.entry(config, slot));
            all.push(&entries.collect::<Vec<_>>()).unwrap();
        }
    }
    let handle = GraphHandle::from_measured(&graph);
    let candidates = Configurations::Layout(all.build().unwrap());
    let request = SuggestRequest::new(&handle, &candidates).source(SuggestionSource::Segments);
    let request = request.adapt(Some(&measured)).count(8).pending(&[0]);
    let next = client.suggest(&request).await.unwrap();
    let next = next.combinations.unwrap();
    let every: Vec<usize> = (0..pending.slots()).collect();
    assert!((0..next.len()).all(|config| at(&next, config, &every) != at(&pending, 0, &every)));
}
