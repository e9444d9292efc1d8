use hlorank_server::{compute::Worker, model::Model};
use hlorank_tests::prelude::*;

use crate::subjects::{alexnet, measured_layouts, random_layouts};

const WORKERS: usize = 2;

/// Nodes of a block of the naive evaluation: as many as the engine's, so that sharing is the only difference.
const BLOCK_NODES: usize = 1024;

/// Naive evaluation on two threads.
pub(crate) struct Naive {
    model: Arc<Model>,
    graph: SegmentedGraph,
}

impl Naive {
    pub(crate) fn new(graph: SegmentedGraph) -> Self {
        Self {
            model: load_model(Task::Layout, WORKERS),
            graph,
        }
    }

    /// Returns the seconds per configuration, measured on this number of them.
    pub(crate) fn seconds(&self, batch: &LayoutBatch) -> f64 {
        let configurations = Configurations::Layout(batch.clone());
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let configurations = &configurations;
                scope.spawn(move || {
                    score_naively(
                        self.model.segment().expect("a segment model"),
                        Worker(worker),
                        &self.graph,
                        configurations,
                        BLOCK_NODES,
                    )
                });
            }
        });
        start.elapsed().as_secs_f64() / (WORKERS * batch.len()) as f64
    }
}

/// Compares ranking every measured layout, with a cached graph and an empty embedding cache, with the naive evaluation.
pub(crate) async fn compare() {
    const CALLS: usize = 15;
    const SAMPLE: usize = 512;
    let Some(measured) = alexnet() else { return };
    let (handle, layouts) = (
        GraphHandle::from_measured(&measured),
        measured_layouts(&measured),
    );
    let naive = Naive::new(SegmentedGraph::new(&measured.graph));
    let sample = random_layouts(layouts, SAMPLE, &mut Rng::with_seed(1));
    let naive = naive.seconds(&sample) * layouts.len() as f64;

    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let configurations = Configurations::Layout(layouts.clone());
    let request = RankRequest::new(&handle, &configurations).top(10);
    let times = call_times(CALLS, async || {
        let ranking = client.rank(&request).await.expect("a ranking");
        assert_eq!(ranking.reuse.rows_cached, 0);
    });
    let times = times.await;
    let what = format!("{} layouts of {}", layouts.len(), measured.name);
    let median = times[CALLS / 2];
    Figure {
        name: "rank_layouts".to_owned(),
        value: median,
        unit: "ms",
        target: Target::AtMost(10.0),
        how: format!(
            "{what} at the client, warm graph, empty embedding cache; median of {CALLS}, fastest {:.1}",
            times[0]
        ),
    }
    .write();
    Figure {
        name: "engine_against_naive".to_owned(),
        value: naive * 1e3 / median,
        unit: "x",
        target: Target::AtLeast(800.0),
        how: format!("{what}: the naive evaluation takes {naive:.1} s by a sample of {SAMPLE}"),
    }
    .write();
}
