//! Measured fusions are kept, whether a report has the program or its hash.

use hlorank_proto::{v1, v1::GetMeasuredGraphRequest};
use hlorank_tests::prelude::*;

#[tokio::test]
async fn a_report_by_hash_keeps_the_program_that_another_call_sent() {
    let folder = tempfile::tempdir().unwrap();
    let flag = store_flag(folder.path());
    let server = TestServer::start_with(&[&flag]).await;
    let (mut calls, program) = (server.cost_model().await, program_graph("adam_small"));
    let graph = Graph {
        source: Some(Source::HloModule(program_module("adam_small").into())),
        task: v1::Task::from(Task::Fusion).into(),
        configurable_nodes: Vec::new(),
    };
    let put = PutGraphRequest {
        graph: Some(graph.clone()),
    };
    let hash = calls.put_graph(put).await.unwrap().into_inner().graph_hash;
    let fusions = Configurations::Fusion(random_fusions(&program, 6, &mut Rng::with_seed(1)));
    let report = ReportMeasurementsRequest {
        graph: Some(graph_by_hash(hash.to_vec())),
        target: "a board".to_owned(),
        batch: Some(config_batch(fusions.to_smallest_form())),
        seconds: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        ..ReportMeasurementsRequest::default()
    };
    let reported = calls
        .report_measurements(report)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (reported.accepted, reported.graph_hash.clone()),
        (6, hash.clone())
    );
    let get = GetMeasuredGraphRequest {
        target: "a board".to_owned(),
        graph_hash: hash,
    };
    let kept = calls
        .get_measured_graph(get)
        .await
        .unwrap()
        .into_inner()
        .graph;
    assert_eq!(kept, Some(graph), "it can be replayed");
}
