//! Whatever is shared, cached, batched or interleaved, scores are those of the naive evaluation.

use std::{num::NonZeroUsize, sync::Arc};

use futures::future::join_all;
use hlorank_graph::{
    Configurations, FEATURES, Graph, GraphArrays, LayoutBatch, LayoutBatchBuilder, LayoutEntry, Limits, Pad,
    SegmentedGraph, Task, TileBatch, TileConfiguration,
};
use hlorank_server::{
    compute::{ComputePool, Worker},
    engine::{Engine, rank},
    registry::Model,
};
use hlorank_tests::{load_model, score_naively};
use proptest::{collection::vec, prelude::*, sample::Index};
use tokio::runtime::Runtime;

const WORKERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// Relative to the largest score.
const TOLERANCE: f32 = 1e-5;

/// Layouts that a random configuration draws from: few, as a search has few.
const ENTRIES: [[u32; 3]; 5] = [[0, 0, 0], [9, 0, 0], [58, 9, 0], [0, 58, 58], [9, 9, 9]];

/// A graph that repeats itself: `blocks` says which of a few blocks stand beside each other.
fn layout_graph(opcodes: &[u8], sizes: &[u16], blocks: &[usize]) -> SegmentedGraph {
    const BLOCK: usize = 5;
    let (mut all_opcodes, mut features, mut edges, mut configurable) = (vec![], vec![], vec![], vec![]);
    for (number, &kind) in blocks.iter().enumerate() {
        let first = u32::try_from(number * BLOCK).unwrap();
        for node in 0..BLOCK {
            all_opcodes.push(opcodes[(kind + node) % opcodes.len()]);
            let mut row = [0.0; FEATURES];
            row[21] = f32::from(sizes[(kind * 3 + node) % sizes.len()]);
            row[22] = f32::from(sizes[(kind + node) % sizes.len()]);
            row[0] = f32::from(u8::from(node + 1 == BLOCK));
            features.extend(row);
        }
        edges.extend([
            [first + 1, first],
            [first + 2, first + 1],
            [first + 3, first + 1],
            [first + 4, first + 3],
        ]);
        // Kinds differ in how many nodes a configuration sets, and blocks of kind 0 are joined to the one before.
        configurable.extend([1, 3][..1 + kind % 2].iter().map(|node| first + node));
        if kind == 0 && number > 0 {
            edges.push([first, first - 4]);
        }
    }
    let arrays =
        GraphArrays::from_features(all_opcodes, features, edges, Pad::Zero, &Limits::default()).unwrap();
    SegmentedGraph::new(&Graph::new(Task::Layout, arrays, configurable).unwrap())
}

fn layouts(slots: usize, choices: &[Vec<Index>]) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(slots, Limits::default());
    for config in choices {
        let entry = |slot: usize| {
            let numbers = ENTRIES[config[slot % config.len()].index(ENTRIES.len())];
            LayoutEntry::from_numbers(numbers, String::new).unwrap()
        };
        builder.push(&(0..slots).map(entry).collect::<Vec<_>>()).unwrap();
    }
    builder.build().unwrap()
}

fn kernel(opcodes: &[u8], sizes: &[u16]) -> SegmentedGraph {
    let mut features = vec![0.0; opcodes.len() * FEATURES];
    for (node, row) in features.chunks_exact_mut(FEATURES).enumerate() {
        row[21] = f32::from(sizes[node % sizes.len()]);
        row[0] = f32::from(u8::from(node + 1 == opcodes.len()));
    }
    let edges = (1..).take(opcodes.len() - 1).map(|node| [node, node - 1]).collect();
    let arrays = GraphArrays::from_features(opcodes.to_vec(), features, edges, Pad::Zero, &Limits::default());
    SegmentedGraph::new(&Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap())
}

fn tiles(outputs: &[[u8; 2]]) -> TileBatch {
    let mut batch = TileBatch::default();
    for output in outputs {
        let output_bounds = output.map(i64::from);
        let tile =
            TileConfiguration { kernel_bounds: &[2], output_bounds: &output_bounds, input_bounds: &[] };
        batch.push(tile, &Limits::default()).unwrap();
    }
    batch
}

fn layout_calls() -> impl Strategy<Value = Vec<(SegmentedGraph, Configurations)>> {
    let graph = (vec(1_u8..120, 4), vec(1_u16..2000, 7), vec(0_usize..4, 1..12));
    let call = (0_usize..3, vec(vec(any::<Index>(), 7), 1..30));
    (vec(graph, 3), vec(call, 1..8)).prop_map(|(graphs, calls)| {
        let graphs: Vec<_> =
            graphs.iter().map(|(opcodes, sizes, blocks)| layout_graph(opcodes, sizes, blocks)).collect();
        let call = |(graph, choices): (usize, Vec<Vec<Index>>)| {
            let graph = &graphs[graph];
            (graph.clone(), Configurations::Layout(layouts(graph.slots(), &choices)))
        };
        calls.into_iter().map(call).collect()
    })
}

fn tile_calls() -> impl Strategy<Value = Vec<(SegmentedGraph, Configurations)>> {
    let kernels = vec((vec(1_u8..120, 1..40), vec(1_u16..2000, 3)), 2);
    let call = (0_usize..2, vec([1_u8..9, 1_u8..9], 1..40));
    (kernels, vec(call, 1..8)).prop_map(|(kernels, calls)| {
        let kernels: Vec<_> = kernels.iter().map(|(opcodes, sizes)| kernel(opcodes, sizes)).collect();
        let call = |(graph, outputs): (usize, Vec<[u8; 2]>)| {
            (kernels[graph].clone(), Configurations::Tile(tiles(&outputs)))
        };
        calls.into_iter().map(call).collect()
    })
}

/// Bytes of the embedding cache: none, few, and enough.
fn caches() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(10_000), Just(1 << 24)]
}

/// Scores the calls at the same time, some of them cancelled on the way; then each again.
async fn score_interleaved(
    engine: &Engine,
    model: &Arc<Model>,
    calls: &[(SegmentedGraph, Configurations)],
    cancelled: &[bool],
) -> Vec<Vec<f32>> {
    let score = |(graph, configurations): &(SegmentedGraph, Configurations)| {
        let (graph, configurations) = (Arc::new(graph.clone()), configurations.clone());
        async move { engine.score(model, &graph, configurations).await.unwrap().scores }
    };
    let first = calls.iter().zip(cancelled).map(async |(call, &cancelled)| {
        if !cancelled {
            return Some(score(call).await);
        }
        // Some of its rows are under way by then, and other calls wait for them.
        let _ = tokio::time::timeout(std::time::Duration::from_micros(300), score(call)).await;
        None
    });
    let first = join_all(first).await;
    let again = join_all(calls.iter().map(score)).await;
    for (first, again) in first.iter().zip(&again) {
        assert!(first.as_ref().is_none_or(|first| first == again), "{first:?} and then {again:?}");
    }
    again
}

fn check(task: Task, cache: u64, calls: &[(SegmentedGraph, Configurations)], cancelled: &[bool]) {
    let model = load_model(task, WORKERS.get());
    let engine = Engine::new(Arc::new(ComputePool::new(WORKERS).unwrap()), cache);
    let scores = Runtime::new().unwrap().block_on(score_interleaved(&engine, &model, calls, cancelled));
    for ((graph, configurations), scores) in calls.iter().zip(scores) {
        let expected = score_naively(&model, Worker(0), graph, configurations, 1);
        let scale = expected.iter().fold(1.0_f32, |scale, score| scale.max(score.abs()));
        for (config, (score, expected)) in scores.iter().zip(&expected).enumerate() {
            assert!(
                (score - expected).abs() <= TOLERANCE * scale,
                "configuration {config}: {score}, not {expected}"
            );
        }
        assert_same_order(&scores, &expected, 2.0 * TOLERANCE * scale);
    }
}

/// Neighbours in one ranking stand in the same order in the other, but for scores closer than `close`.
fn assert_same_order(scores: &[f32], expected: &[f32], close: f32) {
    let ranking = rank(scores, 0);
    for pair in ranking.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|config| expected[config as usize]);
        assert!(before <= after + close, "{} before {}: {before} and {after}", pair[0], pair[1]);
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
}
