//! A policy that cannot be written is not left half written, and calls continue.

use std::ffi::OsString;

use hlorank_proto::v1::PinRequest;
use hlorank_tests::prelude::*;
use rustix::process::Resource;

use super::calls::{MODEL, Question, ask, ended_well, limit, start};

const QUESTION: Question = Question::new(5, 20);
const OTHER: &str = "layout-xla-cpu";

/// Bytes that the disk takes of a file. A policy has more.
const ROOM: u64 = 10;

async fn pin(server: &ServerProcess, name: &str) -> Result<(), Status> {
    let model = server.client().await.get_model(name, None).await.unwrap();
    let pin = PinRequest {
        name: name.to_owned(),
        version: model.version,
    };
    server.admin_calls().await.pin(pin).await.map(drop)
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

/// A file may have as many bytes as the system allows a process, which ends a file in its middle as a full disk does.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_the_disk_takes_half_of_is_refused_whole() {
    let artifacts = Artifacts::all();
    let server = start(&[&artifacts.flag(), "--admin-listen=127.0.0.1:0"]);
    let policy = || fs::read_to_string(artifacts.folder().join("policy.json")).unwrap();
    let mut client = server.cost_model().await;
    let answer = ask(&mut client, QUESTION).await.unwrap();
    pin(&server, MODEL).await.unwrap();
    let before = (policy(), names(artifacts.folder()));

    // By default the system ends a process that exceeds the limit.
    let unlimited = limit(server.id(), Resource::Fsize, Some(ROOM));
    let refused = pin(&server, OTHER).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert_eq!(reason(&refused), "POLICY_NOT_KEPT");
    says!(refused.message(), "policy.json");
    let after = (policy(), names(artifacts.folder()));
    assert_eq!(after, before, "nothing half-written is left");
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), answer);

    limit(server.id(), Resource::Fsize, unlimited);
    pin(&server, OTHER).await.unwrap();
    says!(policy(), MODEL, OTHER);
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), answer);
    ended_well(server).await;
}
