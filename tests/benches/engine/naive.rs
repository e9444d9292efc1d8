use hlorank_server::compute::Worker;
use hlorank_tests::prelude::*;

use crate::subjects::{WITHOUT_CACHE, alexnet, measured_layouts, random_layouts};

const WORKERS: usize = 2;
const CALLS: usize = 15;

/// Configurations that the naive evaluation is measured with.
const SAMPLE: usize = 512;

/// Nodes of a block of the naive evaluation: as many as the engine's, so that sharing is the only difference.
const BLOCK_NODES: usize = 1024;

/// Returns the seconds per configuration of the naive evaluation on two threads.
pub(crate) fn naive_seconds(graph: &SegmentedGraph, batch: &LayoutBatch) -> f64 {
    let model = load_model(Task::Layout, WORKERS);
    let model = model.segment().expect("a segment model");
    let configurations = &Configurations::Layout(batch.clone());
    let start = Instant::now();
    thread::scope(|scope| {
        for worker in (0..WORKERS).map(Worker) {
            scope.spawn(move || score_naively(model, worker, graph, configurations, BLOCK_NODES));
        }
    });
    start.elapsed().as_secs_f64() / (WORKERS * batch.len()) as f64
}

/// Compares ranking every measured layout, with a cached graph and an empty embedding cache, with the naive evaluation.
pub(crate) async fn compare() {
    let Some(measured) = alexnet() else { return };
    let layouts = measured_layouts(&measured);
    let sample = random_layouts(layouts, SAMPLE, &mut Rng::with_seed(1));
    let naive = naive_seconds(&SegmentedGraph::new(&measured.graph), &sample);
    let naive = naive * layouts.len() as f64;

    let server = TestServer::start_with(&[WITHOUT_CACHE]).await;
    let client = server.client().await;
    let handle = GraphHandle::from_measured(&measured);
    let request = RankRequest::new(&handle, configurations(&measured)).top(10);
    let times = Times::of_rankings(CALLS, &client, &request).await;
    let what = format!("{} layouts of {}", layouts.len(), measured.name);
    let how = format!("{what} at the client, warm graph, empty embedding cache");
    Figure::of_median("rank_layouts", &times, 10.0, &how).write();
    Figure {
        name: "engine_against_naive".to_owned(),
        value: naive * 1e3 / times.median(),
        unit: "x",
        target: Target::AtLeast(800.0),
        how: format!("{what}: the naive evaluation takes {naive:.1} s by a sample of {SAMPLE}"),
    }
    .write();
}
