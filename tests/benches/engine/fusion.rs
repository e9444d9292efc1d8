use hlorank_server::compute::Worker;
use hlorank_tests::prelude::*;

/// A program of 164 slots.
const PROGRAM: &str = "transformer_encoder";

const WORKERS: usize = 2;

/// Nodes of a block of the naive evaluation: one kernel at a time, as many as the engine pads it to.
const BLOCK_NODES: usize = 1;

/// Measures a step of annealing, and many random fusions against the naive evaluation.
pub(crate) async fn steps_and_naive() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let client = server.client().await;
    let program = program_graph(PROGRAM);
    let handle = GraphHandle::hlo_module(program_module(PROGRAM), Task::Fusion, Vec::new());
    client.put_graph(&handle).await.expect("a program");
    steps(&client, &handle, &program).await;
    naive(&program).await;
}

/// Measures annealing: each step ranks neighbours of the best of the step before.
async fn steps(
    client: &hlorank_client::Client,
    handle: &GraphHandle,
    program: &hlorank_graph::Graph,
) {
    const STEPS: usize = 200;
    const NEIGHBOURS: usize = 100;
    const FLIPS: usize = 2;
    let mut random = Rng::with_seed(7);
    let mut parent = random_fusions(program, 1, &mut random);
    let (mut times, mut rows, mut kernels) = (Vec::new(), 0, 0);
    for _ in 0..STEPS {
        let neighbours = fusion_neighbours(&parent, 0, NEIGHBOURS, FLIPS, &mut random);
        let configurations = Configurations::Fusion(neighbours.clone());
        let start = Instant::now();
        let ranking = client
            .rank(&RankRequest::new(handle, &configurations).top(1))
            .await
            .expect("a ranking");
        times.push(start.elapsed().as_secs_f64() * 1e3);
        rows += ranking.reuse.rows_evaluated;
        kernels += ranking.reuse.segment_rows;
        parent = neighbours.select(&[ranking.best[0].config]);
    }
    let first = times[0];
    times.sort_by(f64::total_cmp);
    Figure {
        name: "annealing_step".to_owned(),
        value: times[STEPS / 2],
        unit: "ms",
        target: Target::AtMost(3.0),
        how: format!(
            "{NEIGHBOURS} neighbours with up to {FLIPS} other bits, of {PROGRAM} ({} slots) at the client; {:.0} kernels \
             and {:.1} new ones a step; median of {STEPS}, p99 {:.1}, first {first:.1}",
            program.configurable().len(),
            kernels as f64 / STEPS as f64,
            rows as f64 / STEPS as f64,
            times[STEPS * 99 / 100],
        ),
    }
    .write();
}

/// Compares random fusions, with a cached program and an empty embedding cache, with the naive evaluation.
async fn naive(program: &hlorank_graph::Graph) {
    const CONFIGS: usize = 10_000;
    const CALLS: usize = 5;
    const SAMPLE: usize = 16;
    let sample = random_fusions(program, SAMPLE, &mut Rng::with_seed(8));
    let naive = naive_seconds(program, &sample) * CONFIGS as f64;
    let server = TestServer::start_with(&["--embedding-cache-bytes=0", &all_models_flag()]).await;
    let client = server.client().await;
    let handle = GraphHandle::hlo_module(program_module(PROGRAM), Task::Fusion, Vec::new());
    client.put_graph(&handle).await.expect("a program");
    let configurations =
        Configurations::Fusion(random_fusions(program, CONFIGS, &mut Rng::with_seed(9)));
    let mut reuse = None;
    let times = call_times(CALLS, async || {
        let ranking = client
            .rank(&RankRequest::new(&handle, &configurations).top(10))
            .await;
        reuse = Some(ranking.expect("a ranking").reuse);
    })
    .await;
    let (median, reuse) = (times[CALLS / 2] / 1e3, reuse.expect("a call"));
    Figure {
        name: "fusions_against_naive".to_owned(),
        value: naive / median,
        unit: "x",
        target: Target::AtLeast(50.0),
        how: format!(
            "{CONFIGS} random fusions of {PROGRAM} in {median:.2} s at the client, {} kernels of which {} are distinct; \
             naively {naive:.0} s on {WORKERS} threads, from {SAMPLE} fusions",
            reuse.segment_rows, reuse.distinct_segment_rows,
        ),
    }
    .write();
}

/// Returns the seconds per configuration of the naive evaluation.
fn naive_seconds(program: &hlorank_graph::Graph, sample: &FusionBatch) -> f64 {
    let (model, graph) = (
        load_model(Task::Fusion, WORKERS),
        SegmentedGraph::new(program),
    );
    let configurations = Configurations::Fusion(sample.clone());
    let start = Instant::now();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (model, graph, configurations) = (&model, &graph, &configurations);
            scope.spawn(move || {
                let model = model.segment().expect("a segment model");
                score_naively(model, Worker(worker), graph, configurations, BLOCK_NODES)
            });
        }
    });
    start.elapsed().as_secs_f64() / (WORKERS * sample.len()) as f64
}
