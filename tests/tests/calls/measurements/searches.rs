use hlorank_client::v1::{
    DecideRequest, DecisionEvidence, DecisionKey, LeaseRequest, Proposal, decide_request::Step,
};

use super::*;

async fn searches(server: &TestServer) -> Vec<Value> {
    let (status, body) = http_get(server.metrics_address(), "/searches").await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Outcomes of a space's configurations: four of five times of the larger tile, and one failure.
fn outcomes(configs: usize) -> Vec<MeasuredOutcome> {
    let outcome = |config: usize| match config {
        7 => MeasuredOutcome::Failed(MeasurementFailure::Crash),
        _ => MeasuredOutcome::Time {
            seconds: 0.5_f64.powi(i32::try_from(config / 5).unwrap()),
            repeats: 1,
        },
    };
    (0..configs).map(outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_show_what_was_reported_of_each_graph_on_each_target() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    assert_eq!(searches(&server).await, Vec::<Value>::new());

    let space = ParameterSpace::new("1024 x 512");
    let handle = GraphHandle::feature_graph(&space.graph);
    let all = Configurations::FeatureSet(space.batch);
    let measured = Adapt::new("a <board>").measured(&all, &outcomes(20));
    client
        .report_measurements(&handle, &measured)
        .await
        .unwrap();
    let kernel = measured_graph_of(Task::Tile);
    let chosen = some_of(&kernel);
    client
        .report_measurements(
            &GraphHandle::from_measured(&kernel),
            &adapt(TARGET, &kernel, &chosen),
        )
        .await
        .unwrap();

    let searches_now = searches(&server).await;
    let [kernel_search, space_search] = &searches_now[..] else {
        panic!("{searches_now:?}")
    };
    assert_eq!(kernel_search["target"], TARGET);
    assert_eq!(kernel_search["configs"], chosen.len());
    assert_eq!(kernel_search["fastest"], json!([]));
    assert_eq!(space_search["target"], "a <board>");
    assert_eq!(space_search["name"], "gemm");
    assert_eq!(space_search["instance"], "1024 x 512");
    assert_eq!(space_search["configs"], 20);
    assert_eq!(space_search["failed"], 1);
    assert_eq!(space_search["fastest_seconds"], 0.125);
    assert_eq!(
        space_search["fastest"],
        json!([["tile", 4.0], ["warps", 1.0]])
    );
    let curve = json!([[1, 1.0], [6, 0.5], [11, 0.25], [16, 0.125]]);
    assert_eq!(space_search["curve"], curve);
    assert_eq!(space_search["important"], json!([["tile", 1.0]]));

    // The same report again adds nothing, and one of another space is a search of its own.
    client
        .report_measurements(&handle, &measured)
        .await
        .unwrap();
    assert_eq!(searches(&server).await[1]["configs"], 20);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_show_who_measures_and_what_is_decided() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    let space = ParameterSpace::new("");
    let handle = GraphHandle::feature_graph(&space.graph);
    let all = Configurations::FeatureSet(space.batch);
    let lease = |worker: &str| LeaseRequest {
        worker: worker.to_owned(),
        machine: "board 1".to_owned(),
        ..LeaseRequest::default()
    };
    let of_board = Adapt::new(TARGET);
    let request = |worker| {
        SuggestRequest::new(&handle, &all)
            .adapt(Some(&of_board))
            .lease(lease(worker))
    };
    client.suggest(&request("one")).await.unwrap();
    client.suggest(&request("other").count(3)).await.unwrap();
    let search = &searches(&server).await[0];
    let workers = json!([
        {"name": "one", "machine": "board 1", "configs": 1},
        {"name": "other", "machine": "board 1", "configs": 3},
    ]);
    assert_eq!(search["workers"], workers);
    assert_eq!(search["fastest_seconds"], Value::Null);
    assert_eq!(search["decision"], Value::Null);

    let key = DecisionKey {
        namespace: "space".to_owned(),
        key: hlorank_graph::Graph::of_features(space.graph)
            .hash()
            .0
            .to_vec()
            .into(),
        target: TARGET.to_owned(),
    };
    let proposal = Proposal {
        value: br#"{"tile": 4, "warps": 1}"#.to_vec().into(),
        evidence: Some(DecisionEvidence {
            seconds: 0.125,
            runs: 5,
            measured_configs: 20,
            ..DecisionEvidence::default()
        }),
        ..Proposal::default()
    };
    let decide = DecideRequest {
        key: Some(key),
        step: Some(Step::Propose(proposal)),
        ..DecideRequest::default()
    };
    client.decide(&decide).await.unwrap();
    let decision = json!({
        "value": r#"{"tile": 4, "warps": 1}"#, "seconds": 0.125, "runs": 5, "measured_configs": 20, "machine": "",
    });
    assert_eq!(searches(&server).await[0]["decision"], decision);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_whose_last_report_is_the_longest_ago_gives_way() {
    let folder = folder();
    let (server, client) = start(folder.path(), &[]).await;
    for instance in 0..33 {
        let space = ParameterSpace::new(&instance.to_string());
        let handle = GraphHandle::feature_graph(&space.graph);
        let some = Configurations::FeatureSet(space.batch).select(&[0]);
        let measured = Adapt::new(TARGET).measured(&some, &outcomes(1));
        client
            .report_measurements(&handle, &measured)
            .await
            .unwrap();
    }
    let searches = searches(&server).await;
    assert_eq!(searches.len(), 32);
    assert_eq!(searches[0]["instance"], "32");
    assert_eq!(searches[31]["instance"], "1");
    server.stop().await;
}
