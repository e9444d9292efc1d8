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
