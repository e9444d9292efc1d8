//! What clients measure, and who does, is shown as searches.

use hlorank_client::v1::{
    DecideRequest, DecisionEvidence, DecisionKey, LeaseRequest, Proposal, decide_request::Step,
};

use super::*;

async fn searches(server: &TestServer) -> Vec<Value> {
    let (status, body) = http_get(server.metrics_address(), "/searches").await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Measurements of the first configurations of a space: four of five times of the larger tile, and one failure.
fn measured(target: &str, space: &ParameterSpace, configs: usize) -> Adapt {
    let outcome = |config: usize| match config {
        7 => MeasuredOutcome::Failed(MeasurementFailure::Crash),
        _ => MeasuredOutcome::Time {
            seconds: 0.5_f64.powi(i32::try_from(config / 5).unwrap()),
            repeats: 1,
        },
    };
    let outcomes: Vec<MeasuredOutcome> = (0..configs).map(outcome).collect();
    let all = Configurations::FeatureSet(space.batch.clone());
    Adapt::new(target).measured(&part(&all, 0..configs), &outcomes)
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_show_what_was_reported_of_each_graph_on_each_target() {
    let (_folder, server, client) = storing_server(&[]).await;
    assert_eq!(searches(&server).await, Vec::<Value>::new());

    let space = ParameterSpace::new("1024 x 512");
    let handle = GraphHandle::feature_graph(&space.graph);
    let of_space = measured("a <board>", &space, 20);
    let report = async || {
        let report = client.report_measurements(&handle, &of_space);
        report.await.unwrap();
    };
    report().await;
    let kernel = MeasuredList::kernels().remove(0);
    kernel.report(&client, TARGET).await;

    let shown = searches(&server).await;
    let [of_kernel, of_space] = &shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(of_kernel["target"], TARGET);
    assert_eq!(of_kernel["configs"], kernel.seconds.len());
    assert_eq!(of_kernel["fastest"], json!([]));
    for (field, value) in [
        ("target", json!("a <board>")),
        ("name", json!("gemm")),
        ("instance", json!("1024 x 512")),
        ("configs", json!(20)),
        ("failed", json!(1)),
        ("fastest_seconds", json!(0.125)),
        ("fastest", json!([["tile", 4.0], ["warps", 1.0]])),
        (
            "curve",
            json!([[1, 1.0], [6, 0.5], [11, 0.25], [16, 0.125]]),
        ),
        ("important", json!([["tile", 1.0]])),
    ] {
        assert_eq!(of_space[field], value, "{field}");
    }

    // The same report again adds nothing.
    report().await;
    assert_eq!(searches(&server).await[1]["configs"], 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_show_who_measures_and_what_is_decided() {
    let (_folder, server, client) = storing_server(&[]).await;
    let space = ParameterSpace::new("");
    let handle = GraphHandle::feature_graph(&space.graph);
    let all = Configurations::FeatureSet(space.batch);
    for (worker, count) in [("one", 1), ("other", 3)] {
        let lease = LeaseRequest {
            worker: worker.to_owned(),
            machine: "board 1".to_owned(),
            ..LeaseRequest::default()
        };
        let request = SuggestRequest::new(&handle, &all).adapt(Some(Adapt::new(TARGET)));
        let request = request.lease(lease).count(count);
        client.suggest(&request).await.unwrap();
    }
    let search = &searches(&server).await[0];
    let workers = json!([
        {"name": "one", "machine": "board 1", "configs": 1},
        {"name": "other", "machine": "board 1", "configs": 3},
    ]);
    assert_eq!(search["workers"], workers);
    assert_eq!(search["fastest_seconds"], Value::Null);
    assert_eq!(search["decision"], Value::Null);

    let value = r#"{"tile": 4, "warps": 1}"#;
    let proposal = Proposal {
        value: value.into(),
        evidence: Some(DecisionEvidence {
            seconds: 0.125,
            runs: 5,
            measured_configs: 20,
            ..DecisionEvidence::default()
        }),
        ..Proposal::default()
    };
    let decide = DecideRequest {
        key: Some(DecisionKey {
            namespace: "space".to_owned(),
            key: handle.hash().unwrap().0.to_vec().into(),
            target: TARGET.to_owned(),
        }),
        step: Some(Step::Propose(proposal)),
        ..DecideRequest::default()
    };
    client.decide(&decide).await.unwrap();
    let decision =
        json!({"value": value, "seconds": 0.125, "runs": 5, "measured_configs": 20, "machine": ""});
    assert_eq!(searches(&server).await[0]["decision"], decision);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_whose_last_report_is_the_longest_ago_gives_way() {
    let (_folder, server, client) = storing_server(&[]).await;
    for instance in 0..33 {
        let space = ParameterSpace::new(&instance.to_string());
        let handle = GraphHandle::feature_graph(&space.graph);
        let measured = measured(TARGET, &space, 1);
        let report = client.report_measurements(&handle, &measured);
        report.await.unwrap();
    }
    let searches = searches(&server).await;
    assert_eq!(searches.len(), 32);
    assert_eq!(searches[0]["instance"], "32");
    assert_eq!(searches[31]["instance"], "1");
}
