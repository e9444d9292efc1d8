//! Commands that list or change what servers have, at several replicas.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, NO_SERVER, SHORT};

/// Two servers with models and measurements of their own.
struct Replicas {
    servers: [TestServer; 2],
    _folders: [(Artifacts, TempDir); 2],
}

impl Replicas {
    async fn start() -> Self {
        let folder = || (Artifacts::copy(), tempfile::tempdir().unwrap());
        let folders = [folder(), folder()];
        let start = async |(artifacts, folder): &(Artifacts, TempDir)| {
            let store = store_flag(folder.path());
            let flags = [&artifacts.flag(), &store, "--admin-listen=127.0.0.1:0"];
            TestServer::start_with(&flags).await
        };
        let servers = [start(&folders[0]).await, start(&folders[1]).await];
        Self {
            servers,
            _folders: folders,
        }
    }

    /// Commands that call both, and these addresses.
    fn command_line(&self, more: &[&str]) -> CommandLine {
        let [one, other] = &self.servers;
        let listed = |addresses: [&str; 2]| [&addresses, more].concat().join(",");
        let admin = [one, other].map(|server| server.admin_endpoint().unwrap());
        CommandLine::calling(
            &listed([one.endpoint(), other.endpoint()]),
            &listed([&admin[0], &admin[1]]),
        )
    }
}

/// Returns the endpoints of a document of several replicas, and what each of them has under a key.
fn of_replicas<'a>(report: &'a Value, key: &str) -> Vec<(&'a str, &'a Value)> {
    let replicas = report["replicas"].as_array().unwrap().iter();
    let of = |replica: &'a Value| (replica["endpoint"].as_str().unwrap(), &replica[key]);
    replicas.map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_is_listed_and_changed() {
    let replicas = Replicas::start().await;
    let command_line = replicas.command_line(&[]);
    let report = command_line.json(&["models"]);
    let listed = of_replicas(&report, "models");
    let endpoints = replicas.servers.each_ref().map(TestServer::endpoint);
    assert!(listed.iter().map(|(endpoint, _)| *endpoint).eq(endpoints));
    let models = listed[0].1.as_array().unwrap();
    let tile = models
        .iter()
        .find(|model| model["name"] == TILE_MODEL)
        .unwrap();
    let version = format!("{TILE_MODEL}@{}", tile["version"]);
    let pinned = command_line.json(&["models", "pin", &version]);
    for (endpoint, models) in of_replicas(&pinned, "models") {
        let models = models.as_array().unwrap();
        assert!(
            models.iter().any(|model| model["pinned"] == true),
            "{endpoint}"
        );
    }
    for server in &replicas.servers {
        let client = server.client().await;
        assert!(client.get_model(TILE_MODEL, None).await.unwrap().pinned);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn measurements_of_all_replicas_are_listed_exported_and_deleted() {
    let replicas = Replicas::start().await;
    let file = MeasuredFile::tile();
    let mut expected = 0;
    for (number, server) in replicas.servers.iter().enumerate() {
        let client = server.client().await;
        for graph in &file.graphs {
            let chosen = (number..configurations(graph).len()).step_by(2).take(5);
            let adapt = adapt("a board", graph, &chosen.collect::<Vec<_>>());
            let handle = GraphHandle::from_measured(graph);
            let reported = client.report_measurements(&handle, &adapt).await.unwrap();
            expected += u64::from(reported.accepted);
        }
    }
    let command_line = replicas.command_line(&[]);
    let listed = command_line.json(&["measurements", "list"]);
    for (endpoint, kept) in of_replicas(&listed, "kept") {
        assert_eq!(
            kept.as_array().unwrap().len(),
            file.graphs.len(),
            "{endpoint}"
        );
    }
    // A graph that both have measurements of is in one file.
    let exported = command_line.json(&["measurements", "export", "--out", "exported"]);
    let files = exported["files"].as_array().unwrap();
    assert_eq!(files.len(), file.graphs.len());
    let measurements = files
        .iter()
        .map(|file| file["measurements"].as_u64().unwrap());
    assert_eq!(measurements.sum::<u64>(), expected);
    let deleted = command_line.text(&["measurements", "delete", "--target", "a board"]);
    assert_eq!(deleted.lines().count(), 2, "{deleted}");
    for (line, server) in deleted.lines().zip(&replicas.servers) {
        says!(line, server.endpoint(), "Deleted ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_fails_is_named_and_the_others_are_called() {
    let replicas = Replicas::start().await;
    let command_line = replicas.command_line(&[NO_SERVER]);
    for arguments in [
        &["models", "--json", SHORT][..],
        &["models", "reload", "--json"],
        &["measurements", "list", "--json", SHORT],
    ] {
        let output = command_line.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["replicas"].as_array().unwrap().len(), 2);
        assert_eq!(report["failures"][0]["subject"], NO_SERVER);
        says!(
            String::from_utf8(output.stderr).unwrap(),
            "2 succeeded and 1 failed",
            NO_SERVER
        );
    }
}
