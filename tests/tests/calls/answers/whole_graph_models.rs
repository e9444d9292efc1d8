//! Whole-graph models score in chunks of their own size, and share work only if scores do not depend on their chunk.
//! Some take only the nodes that pruning keeps.

use hlorank_graph::{Graph, GraphArrays, prune};
use hlorank_server::{
    compute::ComputePool,
    engine::{Engine, EngineError, Terms},
    model::Model,
    runtime::Runtime,
};
use hlorank_tests::prelude::*;

/// Model whose scores depend on the other configurations of the chunk.
const CROSS_CONFIGURATION: &str = "layout-cross-configuration";
/// Model whose scores depend on the configuration alone.
const INDEPENDENT: [&str; 3] = ["layout-whole-graph", "tile-whole-graph", PRUNED];
/// Model with the weights of `layout-whole-graph` that takes pruned nodes.
const PRUNED: &str = "layout-pruned";
/// `chunk_configs` of the manifests.
const CHUNK: usize = 5;

/// Starts a server with the whole-graph models beside the others.
async fn server() -> TestServer {
    TestServer::start_with(&[&Artifacts::copy().flag()]).await
}

/// Returns the first golden case of a model.
fn golden_case(model: &str) -> GoldenCase {
    golden_cases(&fixture("registry").join(model).join("1")).remove(0)
}

async fn rank(
    client: &Client,
    model: &str,
    graph: &Graph,
    configurations: &Configurations,
) -> Result<Ranking, ClientError> {
    let graph = GraphHandle::features(graph);
    let model = Some(model.parse().unwrap());
    client
        .rank(
            &RankRequest::new(&graph, configurations)
                .model(model)
                .with_scores(),
        )
        .await
}

/// Ranks these configurations of a case.
async fn rank_chosen(
    client: &Client,
    model: &str,
    case: &GoldenCase,
    numbers: &[usize],
) -> Ranking {
    let ranked = rank(
        client,
        model,
        &case.graph,
        &part(&case.configurations, numbers.iter().copied()),
    )
    .await;
    ranked.unwrap_or_else(|error| panic!("{model}: {error}"))
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
    let all: Vec<usize> = (0..case.scores.len()).collect();
    assert!(
        all.len() > 2 * CHUNK && !all.len().is_multiple_of(CHUNK),
        "the last chunk is shorter"
    );
    let together = rank_chosen(&client, CROSS_CONFIGURATION, &case, &all)
        .await
        .scores;
    for (chunk, scores) in all.chunks(CHUNK).zip(together.chunks(CHUNK)) {
        let alone = rank_chosen(&client, CROSS_CONFIGURATION, &case, chunk)
            .await
            .scores;
        assert_eq!(
            alone, scores,
            "chunk {chunk:?} scores alike in the batch and on its own"
        );
    }
    let shifted = rank_chosen(&client, CROSS_CONFIGURATION, &case, &all[1..])
        .await
        .scores;
    let largest = shifted
        .iter()
        .zip(&together[1..])
        .map(|(one, other)| (one - other).abs());
    assert!(
        largest.fold(0.0, f32::max) > 0.1,
        "other chunks, other scores"
    );
}

#[tokio::test]
async fn nothing_is_merged_where_scores_depend_on_the_chunk() {
    let (server, case) = (server().await, golden_case(CROSS_CONFIGURATION));
    let client = server.client().await;
    let repeated = rank_chosen(&client, CROSS_CONFIGURATION, &case, &[0, 0, 1, 0, 1, 0, 1]).await;
    assert_eq!(counts(&repeated), [7, 2, 7, 7]);
    let once = rank_chosen(&client, CROSS_CONFIGURATION, &case, &[0, 1]).await;
    assert_eq!(
        repeated.scores[5..],
        once.scores,
        "the last chunk is these two"
    );
    assert!(
        (repeated.scores[0] - once.scores[0]).abs() > 0.1,
        "the first is not"
    );
}

#[tokio::test]
async fn a_lone_configuration_is_not_padded_where_scores_depend_on_the_chunk() {
    let (server, case) = (server().await, golden_case(CROSS_CONFIGURATION));
    let client = server.client().await;
    let alone = rank_chosen(&client, CROSS_CONFIGURATION, &case, &[0])
        .await
        .scores;
    let twice = rank_chosen(&client, CROSS_CONFIGURATION, &case, &[0, 0])
        .await
        .scores;
    assert!((alone[0] - twice[0]).abs() > 0.1, "{alone:?}, {twice:?}");
}

#[tokio::test]
async fn elsewhere_a_configuration_has_one_score_in_every_batch() {
    let server = server().await;
    let client = server.client().await;
    for model in INDEPENDENT {
        for case in golden_cases(&fixture("registry").join(model).join("1")) {
            let all: Vec<usize> = (0..case.scores.len()).collect();
            let together = rank_chosen(&client, model, &case, &all).await.scores;
            let reversed: Vec<usize> = all.iter().rev().copied().collect();
            let mut batches = vec![reversed, all[1..].to_vec(), [&all[..3], &all[..4]].concat()];
            batches.extend(all.iter().map(|&config| vec![config]));
            for batch in batches {
                let expected: Vec<f32> = batch.iter().map(|&config| together[config]).collect();
                let scores = rank_chosen(&client, model, &case, &batch).await.scores;
                assert_eq!(scores, expected, "{model}: configurations {batch:?}");
            }
        }
    }
}

#[tokio::test]
async fn elsewhere_equal_configurations_are_evaluated_once() {
    let server = server().await;
    let client = server.client().await;
    for model in INDEPENDENT {
        let case = golden_case(model);
        let repeated = rank_chosen(&client, model, &case, &[2, 0, 2, 1, 0, 2, 2]).await;
        assert_eq!(counts(&repeated), [7, 3, 7, 3], "{model}");
        let once = rank_chosen(&client, model, &case, &[2, 0, 1]).await.scores;
        assert_eq!(
            repeated.scores,
            [0, 1, 0, 2, 1, 0, 0].map(|config: usize| once[config]),
            "{model}"
        );
    }
}

/// Returns what pruning keeps of a graph, as a graph of its own.
fn pruned(graph: &Graph) -> Graph {
    let kept = prune(graph);
    let opcodes = kept
        .nodes
        .iter()
        .map(|&node| graph.opcodes()[node as usize])
        .collect();
    let features = graph.features_of(&kept.nodes, Pad::Zero).unwrap();
    let position = |node: &u32| u32::try_from(kept.nodes.binary_search(node).unwrap()).unwrap();
    let configurable = graph.configurable().iter().map(position).collect();
    let arrays = GraphArrays::from_features(
        opcodes,
        features,
        kept.edges.clone(),
        Pad::Zero,
        &Limits::default(),
    );
    Graph::new(Task::Layout, arrays.unwrap(), configurable).unwrap()
}

#[tokio::test]
async fn a_model_of_pruned_nodes_sees_nothing_of_the_others() {
    let (server, case) = (server().await, golden_case(PRUNED));
    let client = server.client().await;
    let kept = pruned(&case.graph);
    assert!(
        kept.len() < case.graph.len(),
        "{} of {} nodes",
        kept.len(),
        case.graph.len()
    );
    let scores = async |model, graph| {
        let ranked = rank(&client, model, graph, &case.configurations).await;
        ranked
            .unwrap_or_else(|error| panic!("{model}: {error}"))
            .scores
    };
    let expected = scores("layout-whole-graph", &kept).await;
    assert_eq!(scores(PRUNED, &case.graph).await, expected);
    assert_eq!(
        scores(PRUNED, &kept).await,
        expected,
        "what is kept is kept again"
    );
    assert_ne!(scores("layout-whole-graph", &case.graph).await, expected);
}

#[tokio::test]
async fn a_graph_of_which_pruning_keeps_nothing_is_refused() {
    let (server, case) = (server().await, golden_case(PRUNED));
    let features = vec![0.0; hlorank_graph::FEATURES];
    let arrays =
        GraphArrays::from_features(vec![63], features, vec![], Pad::Zero, &Limits::default());
    let graph = Graph::new(Task::Layout, arrays.unwrap(), vec![]).unwrap();
    let client = server.client().await;
    let refused = rank(&client, PRUNED, &graph, &case.configurations)
        .await
        .unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::InvalidArgument, Some("NOTHING_TO_CONFIGURE"))
    );

    // The engine refuses it as well, whoever asks.
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    let model =
        Arc::new(Model::load(&fixture("registry").join(PRUNED).join("1"), &runtime, 1).unwrap());
    let engine = Engine::without_cache(Arc::new(ComputePool::new(NonZeroUsize::MIN).unwrap()));
    let nothing = Configurations::Layout(layouts(0, &[vec![0]]));
    let graph = Arc::new(SegmentedGraph::new(&graph));
    let refused = engine
        .score(&model, &graph, nothing, Terms::default())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, EngineError::NothingKept { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_kernel_of_one_node_and_no_edges_is_scored() {
    let server = server().await;
    let features = vec![0.0; hlorank_graph::FEATURES];
    let arrays =
        GraphArrays::from_features(vec![63], features, vec![], Pad::Zero, &Limits::default());
    let kernel = Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap();
    let tiles = Configurations::Tile(tiles(&[[4, 8], [8, 4]]));
    let client = server.client().await;
    let ranked = rank(&client, "tile-whole-graph", &kernel, &tiles)
        .await
        .unwrap();
    assert_ne!(ranked.scores[0], ranked.scores[1]);
}

#[tokio::test]
async fn a_score_that_is_no_number_is_reported() {
    let models = Artifacts::copy();
    models.spoil_opcode("tile-whole-graph", 119);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let (client, tiles) = (server.client().await, grid_configurations(4));
    let kernel = chain_kernel(&[119], &[8]);
    let refused = rank(&client, "tile-whole-graph", &kernel, &tiles)
        .await
        .unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::Internal, Some("MODEL_OUTPUT_INVALID"))
    );
    says!(refusal.message(), "NaN for configuration 0");
}
