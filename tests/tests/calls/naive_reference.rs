//! Scores equal those of the naive evaluation, whatever is shared, cached, batched or interleaved.

use futures::future::join_all;
use hlorank_graph::{Graph, MAX_SEGMENT_NODES};
use hlorank_server::{
    compute::{ComputePool, Worker},
    engine::{CacheBytes, Engine, Terms, rank},
    metrics::Metrics,
    model::{Model, SegmentModel},
};
use hlorank_tests::prelude::*;
use proptest::{collection::vec, prelude::*};

const WORKERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// Tolerance, relative to the largest score.
const TOLERANCE: f32 = 1e-5;

type Call = (Arc<SegmentedGraph>, Configurations);

/// Draws calls for a few graphs that share segments and configurations.
fn layout_calls() -> impl Strategy<Value = Vec<Call>> {
    let graph = (
        vec(1_u8..120, 4),
        vec(1_u16..2000, 7),
        vec(0_usize..4, 1..12),
    );
    let call = (0_usize..3, vec(vec(0_usize..5, 7), 1..30));
    (vec(graph, 3), vec(call, 1..8)).prop_map(|(graphs, calls)| {
        let graph = |(opcodes, sizes, blocks): &(Vec<u8>, Vec<u16>, Vec<usize>)| {
            Arc::new(SegmentedGraph::new(&block_graph(opcodes, sizes, blocks)))
        };
        let graphs: Vec<_> = graphs.iter().map(graph).collect();
        let call = |(graph, choices): (usize, Vec<Vec<usize>>)| {
            let graph = Arc::clone(&graphs[graph]);
            let layouts = layouts(graph.slots(), &choices);
            (graph, Configurations::Layout(layouts))
        };
        calls.into_iter().map(call).collect()
    })
}

fn tile_calls() -> impl Strategy<Value = Vec<Call>> {
    let kernels = vec((vec(1_u8..120, 1..40), vec(1_u16..2000, 3)), 2);
    let call = (0_usize..2, vec([1_i64..9, 1_i64..9], 1..40));
    (kernels, vec(call, 1..8)).prop_map(|(kernels, calls)| {
        let kernel = |(opcodes, sizes): &(Vec<u8>, Vec<u16>)| {
            Arc::new(SegmentedGraph::new(&chain_kernel(opcodes, sizes)))
        };
        let kernels: Vec<_> = kernels.iter().map(kernel).collect();
        let call = |(kernel, outputs): (usize, Vec<[i64; 2]>)| {
            let kernel = Arc::clone(&kernels[kernel]);
            (kernel, Configurations::Tile(tiles(&outputs)))
        };
        calls.into_iter().map(call).collect()
    })
}

/// Draws the size of the embedding cache in bytes: none, few, or enough.
fn caches() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(10_000), Just(1 << 24)]
}

/// Scores the calls concurrently, cancels some of them on the way, and then scores each again.
async fn score_interleaved(
    engine: &Engine,
    model: &Arc<Model>,
    calls: &[Call],
    cancelled: &[bool],
) -> Vec<Vec<f32>> {
    let score = async |(graph, configurations): &Call| {
        let configurations = configurations.clone();
        engine
            .score(model, graph, configurations, Terms::default())
            .await
            .unwrap()
            .scores
    };
    let first = calls.iter().zip(cancelled).map(async |(call, &cancelled)| {
        if !cancelled {
            return Some(score(call).await);
        }
        // Some of its rows are being evaluated by then, and other calls wait for them.
        let _ = timeout(Duration::from_micros(300), score(call)).await;
        None
    });
    let first = join_all(first).await;
    let again = join_all(calls.iter().map(score)).await;
    for (first, again) in first.iter().zip(&again) {
        assert!(
            first.as_ref().is_none_or(|first| first == again),
            "{first:?} and then {again:?}"
        );
    }
    again
}

fn check(task: Task, cache: u64, calls: &[Call], cancelled: &[bool]) {
    let model = load_model(task, WORKERS.get());
    let pool = Arc::new(ComputePool::new(WORKERS).unwrap());
    let cached = CacheBytes {
        embeddings: cache,
        segments: cache / 8,
    };
    let engine = Engine::new(pool, cached, &Metrics::default());
    let scores = score_interleaved(&engine, &model, calls, cancelled);
    let scores = Runtime::new().unwrap().block_on(scores);
    for ((graph, configurations), scores) in calls.iter().zip(scores) {
        let expected = naive(model.segment().unwrap(), graph, configurations);
        match task {
            Task::Fusion => assert_same_seconds(&scores, &expected),
            Task::Layout | Task::Tile | Task::FeatureSet => assert_near(&scores, &expected),
        }
    }
}

fn naive(model: &SegmentModel, graph: &SegmentedGraph, batch: &Configurations) -> Vec<f32> {
    score_naively(model, Worker(0), graph, batch, 1)
}

/// Small programs, of which equal kernels occur in both.
const PROGRAMS: [&str; 3] = ["adam_small", "sharpen_train", "recommender"];

fn fusion_calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0..PROGRAMS.len(), any::<u64>(), 1_usize..12, 0_usize..12);
    vec(call, 1..6).prop_map(|calls| {
        let graphs = PROGRAMS.map(|name| Arc::new(SegmentedGraph::new(&program_graph(name))));
        let call = |(program, seed, drawn, near): (usize, u64, usize, usize)| {
            let graph = Arc::clone(&graphs[program]);
            let mut random = fastrand::Rng::with_seed(seed);
            let mut batch = random_fusions(&graph.whole, drawn, &mut random);
            if near > 0 {
                batch = fusion_neighbours(&batch, 0, near, 2, &mut random);
            }
            (graph, Configurations::Fusion(batch))
        };
        calls.into_iter().map(call).collect()
    })
}

/// Asserts that seconds are equal but for rounding, in proportion to each.
fn assert_same_seconds(scores: &[f32], expected: &[f32]) {
    const PROPORTION: f32 = 1e-4;
    for (config, (&score, &expected)) in scores.iter().zip(expected).enumerate() {
        let is_near = score == expected || (score - expected).abs() <= PROPORTION * expected;
        assert!(is_near, "configuration {config}: {score}, not {expected}");
    }
}

fn assert_near(scores: &[f32], expected: &[f32]) {
    let scale = expected
        .iter()
        .fold(1.0_f32, |scale, score| scale.max(score.abs()));
    for (config, (score, expected)) in scores.iter().zip(expected).enumerate() {
        assert!(
            (score - expected).abs() <= TOLERANCE * scale,
            "configuration {config}: {score}, not {expected}"
        );
    }
    assert_same_order(scores, expected, 2.0 * TOLERANCE * scale);
}

/// Asserts that neighbours in one ranking have the same order in the other, unless their scores are closer than
/// `close`.
fn assert_same_order(scores: &[f32], expected: &[f32], close: f32) {
    for pair in rank(scores, 0).windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|config| expected[config as usize]);
        assert!(
            before <= after + close,
            "{pair:?} have {before} and {after}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn layouts_have_the_scores_of_the_naive_evaluation(
        calls in layout_calls(), cache in caches(), cancelled in vec(any::<bool>(), 8)
    ) {
        check(Task::Layout, cache, &calls, &cancelled);
    }

    #[test]
    fn tiles_have_the_scores_of_the_naive_evaluation(
        calls in tile_calls(), cache in caches(), cancelled in vec(any::<bool>(), 8)
    ) {
        check(Task::Tile, cache, &calls, &cancelled);
    }

    #[test]
    fn fusions_have_the_scores_of_the_naive_evaluation(
        calls in fusion_calls(), cache in caches(), cancelled in vec(any::<bool>(), 8)
    ) {
        check(Task::Fusion, cache, &calls, &cancelled);
    }
}

/// Returns a kernel of this number of nodes.
fn large_kernel(nodes: usize) -> Graph {
    let opcodes: Vec<u8> = (1..=100).cycle().take(nodes).collect();
    chain_kernel(&opcodes, &[128, 64, 256])
}

fn some_tiles() -> Configurations {
    Configurations::Tile(tiles(&[[1, 2], [4, 8], [1, 2]]))
}

/// A component with more nodes than a segment may have is cut, and every part contributes to the score.
#[test]
fn pieces_larger_than_a_segment_have_the_scores_of_the_naive_evaluation() {
    let module = block_graph(&[26, 34, 2, 80], &[8, 16, 3, 128, 7, 64, 1], &[0; 260]);
    let module = Arc::new(SegmentedGraph::new(&module));
    let summary = &module.summary;
    assert!(summary.kept > 2 * MAX_SEGMENT_NODES, "{summary:?}");
    assert_eq!(module.occurrences.len(), 3);
    let choices = [vec![0], vec![1, 0, 2], vec![1, 0, 2, 2]];
    let batch = Configurations::Layout(layouts(module.slots(), &choices));
    check(Task::Layout, 1 << 24, &[(module, batch)], &[false]);

    let kernel = SegmentedGraph::new(&large_kernel(2 * MAX_SEGMENT_NODES + 3));
    assert_eq!(kernel.occurrences.len(), 3);
    let call = (Arc::new(kernel), some_tiles());
    check(Task::Tile, 1 << 24, &[call], &[false]);
}

/// A tile model may take larger segments. A kernel is then cut at its size.
#[test]
fn larger_segments_have_the_scores_of_the_naive_evaluation() {
    const NODES: usize = 1024;
    let models = Artifacts::copy();
    let version = models.versions(TILE_MODEL).remove(0);
    models.edit_manifest(&version, |manifest| {
        manifest["max_segment_nodes"] = NODES.into();
        let buckets = manifest["buckets"].as_array_mut().unwrap();
        buckets.push(NODES.into());
    });
    let model = load_version(&version).unwrap();
    let naive = |graph: &SegmentedGraph| naive(model.segment().unwrap(), graph, &some_tiles());
    let kernel = large_kernel(MAX_SEGMENT_NODES + 100);
    let usual = SegmentedGraph::new(&kernel);
    let larger = SegmentedGraph::cut(&kernel, NODES);
    assert_eq!((usual.occurrences.len(), larger.occurrences.len()), (2, 1));
    assert_ne!(naive(&usual), naive(&larger));

    let scores = score_alone(&model, usual, some_tiles());
    let scores = Runtime::new().unwrap().block_on(scores).unwrap();
    assert_near(&scores, &naive(&larger));
}

/// Rows are looked up several thousand at a time.
#[test]
fn many_rows_have_the_scores_of_the_naive_evaluation() {
    let kernel = SegmentedGraph::new(&chain_kernel(&[63, 26], &[128, 64]));
    let call = (Arc::new(kernel), grid_configurations(20_000));
    check(Task::Tile, 1 << 22, &[call], &[false]);
}
