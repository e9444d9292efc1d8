//! Several servers on one folder change its policies at the same time, and no acknowledged change is lost.

use futures::future::join_all;
use hlorank_tests::prelude::*;

const SERVERS: usize = 3;
const MODELS_PER_SERVER: usize = 5;
/// Changes of each model.
const ROUNDS: u64 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_pin_is_lost() {
    let artifacts = Artifacts::tiles();
    let first: u64 = artifacts.versions(MODEL)[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    artifacts.publish(MODEL, first + 1, |_| ());
    let names: Vec<String> = (0..SERVERS * MODELS_PER_SERVER)
        .map(|model| format!("tile-{model}"))
        .collect();
    for name in &names {
        artifacts.copy_model(MODEL, name);
    }
    let flags = [
        &artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--workers=1",
    ];
    let servers = join_all((0..SERVERS).map(|_| TestServer::start_with(&flags))).await;
    let admins = join_all(servers.iter().map(TestServer::admin)).await;
    for round in 0..ROUNDS {
        let version = first + round % 2;
        let pins = names
            .iter()
            .zip(admins.iter().cycle())
            .map(|(name, admin)| admin.pin(name, version));
        join_all(pins)
            .await
            .into_iter()
            .for_each(|pinned| drop(pinned.unwrap()));
        let expected: BTreeMap<&str, u64> =
            names.iter().map(|name| (name.as_str(), version)).collect();
        let json = fs::read(artifacts.folder().join("policy.json")).unwrap();
        let policies: BTreeMap<String, Value> = serde_json::from_slice(&json).unwrap();
        let pinned = policies
            .iter()
            .map(|(name, policy)| (name.as_str(), policy["pinned"].as_u64().unwrap()));
        assert_eq!(
            pinned.collect::<BTreeMap<_, _>>(),
            expected,
            "round {round}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_states_loads_and_the_reasons_of_rejections() {
    let subject = Subject::start().await;
    let (second, bad) = (subject.first + 1, subject.first + 2);
    subject.publish(second).await;
    subject.artifacts.publish(MODEL, bad, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    subject.server.until(MODEL, bad, ModelState::Rejected).await;

    let scrape = subject.server.scrape().await;
    let versions = |state| {
        scrape.value(
            "hlorank_model_versions",
            &[("model", MODEL), ("state", state)],
        )
    };
    assert_eq!(
        ["serving", "retained", "rejected", "validating"].map(versions),
        [1.0, 1.0, 1.0, 0.0]
    );
    assert_eq!(
        scrape.value("hlorank_model_stable_version", &[("model", MODEL)]),
        second as f64
    );
    assert_eq!(
        scrape.value("hlorank_model_canary_version", &[("model", MODEL)]),
        0.0
    );
    let loads = |result| {
        scrape.value(
            "hlorank_model_loads_total",
            &[("model", MODEL), ("result", result)],
        )
    };
    assert_eq!(["loaded", "rejected"].map(loads), [2.0, 1.0]);
    assert_eq!(
        scrape.value(
            "hlorank_model_rejections_total",
            &[("reason", "FILE_MISSING")]
        ),
        1.0
    );
    // The serving version changed once for each model at the start, and once for the second version.
    let models = subject.server.client().await.list_models().await.unwrap();
    let serving = models.iter().filter(|model| model.serving).count();
    assert_eq!(
        scrape.value("hlorank_model_swap_duration_seconds_count", &[]),
        serving as f64 + 1.0
    );
}
