//! A batch is read and checked once, whatever a call does with it. The server logs each time that it reads one.

use hlorank_tests::prelude::*;

fn start(artifacts: &Artifacts) -> ServerProcess {
    let tiles = format!("--default-models=tile={TILE_MODEL}");
    ServerProcess::start(&[&artifacts.flag(), &tiles, "--log=info,hlorank_server=trace"])
}

/// Returns the field of each batch that was read, in the order of the reads, once this many calls have been logged. The line
/// of a call follows those of its work.
async fn reads(server: &ServerProcess, calls: usize) -> Vec<String> {
    server.lines(calls, |line| line["target"] == "access").await;
    let is_read = |line: &Value| line["fields"]["message"] == "a batch is read";
    let reads = server.lines(0, is_read).await;
    let field = |line: &Value| line["fields"]["field"].as_str().unwrap().to_owned();
    reads.iter().map(field).collect()
}

#[tokio::test]
async fn a_batch_is_read_once_for_scores_and_kernels() {
    let artifacts = Artifacts::all();
    let server = start(&artifacts);
    let client = server.client().await;
    let handle = GraphHandle::hlo_module(program_module("sharpen_train"), Task::Fusion, Vec::new());
    let fusions = random_fusions(&program_graph("sharpen_train"), 20, &mut Rng::with_seed(1));
    let batch = Configurations::Fusion(fusions);
    let request = RankRequest::new(&handle, &batch).explain(5);
    let ranking = client.rank(&request).await.unwrap();
    assert_eq!(ranking.kernels.len(), 5);
    let reads = reads(&server, 1).await;
    assert_eq!(reads.len(), 1, "{reads:?}");
}

#[tokio::test]
async fn the_measured_and_the_ranked_batch_of_a_call_are_read_once_each() {
    let artifacts = Artifacts::copy();
    let server = start(&artifacts);
    let client = server.client().await;
    let graphs = measured_graphs();
    let graph = graphs
        .iter()
        .find(|graph| graph.graph.task() == Task::Tile && configurations(graph).len() >= 10)
        .unwrap();
    let some: Vec<usize> = (0..10).collect();
    let measured = run_times([1e-3; 10]);
    let measured = Adapt::new("test").measured(&part(configurations(graph), some), &measured);
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, configurations(graph)).adapt(Some(measured));
    client.rank(&request).await.unwrap();
    let reads = reads(&server, 1).await;
    assert_eq!(reads.len(), 2, "{reads:?}");
    assert_eq!(reads[0], "adapt.batch");
}
