//! A batch is read and checked once, whatever a call does with it. The server logs each time that it reads one.

use hlorank_tests::prelude::*;

/// Makes one call of a server, and returns the field of each batch that was read, in the order of the reads.
async fn reads(request: &RankRequest<'_>) -> (Ranking, Vec<String>) {
    let tiles = format!("--default-models=tile={TILE_MODEL}");
    let server = ServerProcess::start(&[&tiles, "--log=info,hlorank_server=trace"]);
    let ranking = server.client().await.rank(request).await.unwrap();
    // The line of a call follows those of its work.
    server.lines(1, is_access).await;
    let reads = server.lines(0, with_message("a batch is read")).await;
    let field = |line: &Value| line["fields"]["field"].as_str().unwrap().to_owned();
    (ranking, reads.iter().map(field).collect())
}

#[tokio::test]
async fn a_batch_is_read_once_for_scores_and_kernels() {
    let handle = GraphHandle::hlo_module(program_module("sharpen_train"), Task::Fusion, Vec::new());
    let fusions = random_fusions(&program_graph("sharpen_train"), 20, &mut Rng::with_seed(1));
    let batch = Configurations::Fusion(fusions);
    let (ranking, reads) = reads(&RankRequest::new(&handle, &batch).explain(5)).await;
    assert_eq!(ranking.kernels.len(), 5);
    assert_eq!(reads.len(), 1, "{reads:?}");
}

#[tokio::test]
async fn the_measured_and_the_ranked_batch_of_a_call_are_read_once_each() {
    let graph = measured_graphs_of(Task::Tile)
        .find(|graph| configurations(graph).len() >= 10)
        .unwrap();
    let measured = adapt("test", &graph, &(0..10).collect::<Vec<_>>());
    let handle = GraphHandle::from_measured(&graph);
    let request = RankRequest::new(&handle, configurations(&graph)).adapt(Some(measured));
    let (_, reads) = reads(&request).await;
    assert_eq!(reads.len(), 2, "{reads:?}");
    assert_eq!(reads[0], "adapt.batch");
}
