//! Whole-graph models score in chunks of their own size, and share work only if scores do not depend on their chunk.
//! Some take only the nodes that pruning keeps.

use hlorank_graph::{Graph, GraphArrays, prune};
use hlorank_server::engine::EngineError;
use hlorank_tests::prelude::*;

use crate::answers::{golden_case, rank_chosen};

/// Model whose scores depend on the other configurations of the chunk.
const CROSS_CONFIGURATION: &str = "layout-cross-configuration";
/// Model with the weights of [`PRUNED`] that takes all nodes.
const WHOLE: &str = "layout-whole-graph";
/// Model that takes pruned nodes.
const PRUNED: &str = "layout-pruned";
/// Models whose scores depend on the configuration alone.
const INDEPENDENT: [&str; 3] = [WHOLE, "tile-whole-graph", PRUNED];
/// `chunk_configs` of the manifests.
const CHUNK: usize = 5;

/// Starts a server with the whole-graph models beside the others.
async fn server() -> TestServer {
    TestServer::start_with(&[&Artifacts::copy().flag()]).await
}

/// Returns the counts of configurations sent, distinct configurations, rows, and rows evaluated.
fn counts(ranking: &Ranking) -> [u64; 4] {
    let reuse = &ranking.reuse;
    assert_eq!(reuse.rows_evaluated, reuse.distinct_segment_rows);
    [
        reuse.configs,
        reuse.distinct_configs,
        reuse.segment_rows,
        reuse.rows_evaluated,
    ]
}

#[tokio::test]
async fn chunks_are_what_was_sent_in_the_order_sent() {
    let (server, case) = (server().await, golden_case(CROSS_CONFIGURATION));
    let client = server.client().await;
    let scores = async |chosen: &[usize]| {
        let ranking = rank_chosen(&client, CROSS_CONFIGURATION, &case, chosen).await;
        ranking.scores
    };
    let all: Vec<usize> = (0..case.scores.len()).collect();
    assert!(
        all.len() > 2 * CHUNK && !all.len().is_multiple_of(CHUNK),
        "the last chunk is shorter"
    );
    let together = scores(&all).await;
    for (chunk, expected) in all.chunks(CHUNK).zip(together.chunks(CHUNK)) {
        assert_eq!(scores(chunk).await, expected, "chunk {chunk:?}");
    }
    let shifted = scores(&all[1..]).await;
    let mut pairs = shifted.iter().zip(&together[1..]);
    assert!(
        pairs.any(|(one, other)| (one - other).abs() > 0.1),
        "other chunks, other scores"
    );
}

#[tokio::test]
async fn nothing_is_merged_or_padded_where_scores_depend_on_the_chunk() {
    let (server, case) = (server().await, golden_case(CROSS_CONFIGURATION));
    let client = server.client().await;
    let rank =
        async |chosen: &[usize]| rank_chosen(&client, CROSS_CONFIGURATION, &case, chosen).await;
    let repeated = rank(&[0, 0, 1, 0, 1, 0, 1]).await;
    assert_eq!(counts(&repeated), [7, 2, 7, 7]);
    let once = rank(&[0, 1]).await.scores;
    assert_eq!(repeated.scores[5..], once, "the last chunk is these two");
    let [alone, twice] = [rank(&[0]).await.scores[0], rank(&[0, 0]).await.scores[0]];
    for (one, other) in [(repeated.scores[0], once[0]), (alone, twice)] {
        assert!((one - other).abs() > 0.1, "{one} and {other}");
    }
}

#[tokio::test]
async fn elsewhere_a_configuration_has_one_score_and_is_evaluated_once() {
    let server = server().await;
    let client = server.client().await;
    for model in INDEPENDENT {
        for case in golden_cases(&fixture("registry").join(model).join("1")) {
            let all: Vec<usize> = (0..case.scores.len()).collect();
            let together = rank_chosen(&client, model, &case, &all).await.scores;
            let repeated = vec![2, 0, 2, 1, 0, 2, 2];
            let reversed = all.iter().rev().copied().collect();
            let mut batches = vec![repeated, reversed, all[1..].to_vec()];
            batches.extend(all.iter().map(|&config| vec![config]));
            for batch in batches {
                let expected: Vec<f32> = batch.iter().map(|&config| together[config]).collect();
                let ranking = rank_chosen(&client, model, &case, &batch).await;
                assert_eq!(ranking.scores, expected, "{model}: {batch:?}");
                let sent = batch.len() as u64;
                let distinct = BTreeSet::from_iter(batch).len() as u64;
                assert_eq!(counts(&ranking), [sent, distinct, sent, distinct]);
            }
        }
    }
}

/// Returns what pruning keeps of a graph, as a graph of its own.
fn pruned(graph: &Graph) -> Graph {
    let kept = prune(graph);
    let nodes = kept.nodes.iter();
    let opcodes = nodes.map(|&node| graph.opcodes()[node as usize]).collect();
    let features = graph.features_of(&kept.nodes, Pad::Zero).unwrap();
    let position = |node: &u32| u32::try_from(kept.nodes.binary_search(node).unwrap()).unwrap();
    let configurable = graph.configurable().iter().map(position).collect();
    layout_graph(opcodes, features, kept.edges.clone(), configurable)
}

fn layout_graph(
    opcodes: Vec<u8>,
    features: Vec<f32>,
    edges: Vec<[u32; 2]>,
    configurable: Vec<u32>,
) -> Graph {
    let limits = Limits::default();
    let arrays = GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &limits);
    Graph::new(Task::Layout, arrays.unwrap(), configurable).unwrap()
}

#[tokio::test]
async fn a_model_of_pruned_nodes_sees_nothing_of_the_others() {
    let (server, case) = (server().await, golden_case(PRUNED));
    let client = server.client().await;
    let kept = pruned(&case.graph);
    assert!(kept.len() < case.graph.len(), "{} nodes", kept.len());
    let scores = async |model: &str, graph: &Graph| {
        let graph = GraphHandle::features(graph);
        let ranked = rank_by(&client, model, &graph, &case.configurations).await;
        ranked.unwrap().scores
    };
    let expected = scores(WHOLE, &kept).await;
    assert_eq!(scores(PRUNED, &case.graph).await, expected);
    let again = scores(PRUNED, &kept).await;
    assert_eq!(again, expected, "what is kept is kept again");
    assert_ne!(scores(WHOLE, &case.graph).await, expected);
}

#[tokio::test]
async fn a_graph_of_which_pruning_keeps_nothing_is_refused() {
    let graph = layout_graph(vec![63], vec![0.0; FEATURES], vec![], vec![]);
    let model = load_version(&fixture("registry").join(PRUNED).join("1")).unwrap();
    let nothing = Configurations::Layout(layouts(0, &[vec![0]]));
    let refused = score_alone(&model, SegmentedGraph::new(&graph), nothing).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, EngineError::NothingKept { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_kernel_of_one_node_and_no_edges_is_scored() {
    let server = server().await;
    let kernel = GraphHandle::features(&chain_kernel(&[63], &[8]));
    let tiles = Configurations::Tile(tiles(&[[4, 8], [8, 4]]));
    let client = server.client().await;
    let ranked = rank_by(&client, "tile-whole-graph", &kernel, &tiles).await;
    let scores = ranked.unwrap().scores;
    assert_ne!(scores[0], scores[1]);
}
