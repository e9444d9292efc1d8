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
    let first = artifacts.versions(MODEL).remove(0);
    let first: u64 = first
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
    let models = artifacts.flag();
    let flags = [&*models, "--admin-listen=127.0.0.1:0", "--workers=1"];
    let servers = join_all((0..SERVERS).map(|_| TestServer::start_with(&flags))).await;
    let admins = join_all(servers.iter().map(TestServer::admin)).await;
    for round in 0..ROUNDS {
        let version = first + round % 2;
        let pins = names.iter().zip(admins.iter().cycle());
        for pinned in join_all(pins.map(|(name, admin)| admin.pin(name, version))).await {
            pinned.unwrap();
        }
        let policies = fs::read(artifacts.folder().join("policy.json")).unwrap();
        let policies: BTreeMap<String, Value> = serde_json::from_slice(&policies).unwrap();
        let pinned: BTreeMap<&str, u64> = policies
            .iter()
            .map(|(name, policy)| (name.as_str(), policy["pinned"].as_u64().unwrap()))
            .collect();
        let expected = names.iter().map(|name| (name.as_str(), version)).collect();
        assert_eq!(pinned, expected, "round {round}");
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
    subject.rejection(bad).await;

    let scrape = subject.server.scrape().await;
    let model = ("model", MODEL);
    for (name, labels, value) in [
        ("versions", &[model, ("state", "serving")][..], 1.0),
        ("versions", &[model, ("state", "retained")], 1.0),
        ("versions", &[model, ("state", "rejected")], 1.0),
        ("versions", &[model, ("state", "validating")], 0.0),
        ("stable_version", &[model], second as f64),
        ("canary_version", &[model], 0.0),
        ("loads_total", &[model, ("result", "loaded")], 2.0),
        ("loads_total", &[model, ("result", "rejected")], 1.0),
        ("rejections_total", &[("reason", "FILE_MISSING")], 1.0),
    ] {
        let found = scrape.value(&format!("hlorank_model_{name}"), labels);
        assert_eq!(found, value, "{name} {labels:?}");
    }
    // The serving version changed once for each model at the start, and once for the second version.
    let models = subject.server.client().await.list_models().await.unwrap();
    let serving = models.iter().filter(|model| model.serving).count();
    let swaps = scrape.value("hlorank_model_swap_duration_seconds_count", &[]);
    assert_eq!(swaps, serving as f64 + 1.0);
}
