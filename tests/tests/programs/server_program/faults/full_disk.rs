//! Files that cannot be written are not left half written, and calls continue.

use std::{
    ffi::OsString,
    io::{ErrorKind, Write as _},
};

use hlorank_proto::v1::PinRequest;
use hlorank_tests::prelude::*;
use rustix::process::Resource;

use super::calls::{MODEL, Question, ask, ended_well, limit, start};

const QUESTION: Question = Question::new(5, 20);
const OTHER: &str = "layout-xla-cpu";

async fn pin(server: &ServerProcess, name: &str) -> Result<(), Status> {
    let mut admin = server.admin_calls().await;
    let models = admin
        .reload(hlorank_proto::v1::ReloadRequest {})
        .await?
        .into_inner()
        .models;
    let version = models
        .iter()
        .find(|model| model.name == name && model.serving)
        .unwrap()
        .version;
    admin
        .pin(PinRequest {
            name: name.to_owned(),
            version,
        })
        .await
        .map(drop)
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

/// Pins a version, then another while nothing can be written, and that one again afterwards.
async fn pin_around(
    server: &ServerProcess,
    folder: &Path,
    full: impl FnOnce(),
    free: impl FnOnce(),
) {
    let mut client = server.cost_model().await;
    let answer = ask(&mut client, QUESTION).await.unwrap();
    pin(server, MODEL).await.unwrap();
    let policy = fs::read(folder.join("policy.json")).unwrap();

    full();
    let before = names(folder);
    let refused = pin(server, OTHER).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert_eq!(reason(&refused), "POLICY_NOT_KEPT");
    says!(refused.message(), "policy.json");
    assert_eq!(
        fs::read(folder.join("policy.json")).unwrap(),
        policy,
        "the old one"
    );
    assert_eq!(names(folder), before, "nothing half-written is left");
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), answer);

    free();
    pin(server, OTHER).await.unwrap();
    let policy = fs::read_to_string(folder.join("policy.json")).unwrap();
    assert!(policy.contains(MODEL) && policy.contains(OTHER), "{policy}");
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_over_the_allowed_size_of_a_file_is_refused_whole() {
    let artifacts = Artifacts::all();
    let server = start(&[&artifacts.flag(), "--admin-listen=127.0.0.1:0"]);
    // By default the system ends a process that exceeds the file size limit.
    let full = || _ = limit(server.id(), Resource::Fsize, Some(0));
    let free = || _ = limit(server.id(), Resource::Fsize, None);
    pin_around(&server, artifacts.folder(), full, free).await;
    ended_well(server).await;
}

/// Starts a server whose models are on its own small file system. Returns `None` if the test lacks the rights for that.
fn on_small_disk(mounted: &Path) -> Option<ServerProcess> {
    const OWN_MOUNTS: [&str; 3] = ["--user", "--map-root-user", "--mount"];
    const SCRIPT: &str = r#"mount -t tmpfs -o size=8m none "$MOUNTED" && cp -rL "$REGISTRY/." "$MOUNTED" && exec "$@""#;
    let mut unshare = Command::new("unshare");
    unshare.args(OWN_MOUNTS);
    let mut trial = Command::new("unshare");
    trial
        .args(OWN_MOUNTS)
        .args(["mount", "-t", "tmpfs", "none"])
        .arg(mounted);
    if !trial
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|tried| tried.success())
    {
        skipped("`unshare`, and the right to mount in a namespace of its own");
        return None;
    }
    let program = server_program();
    unshare
        .args(["sh", "-c", SCRIPT, "sh"])
        .arg(program.get_program());
    unshare.envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    unshare
        .env("MOUNTED", mounted)
        .env("REGISTRY", all_models());
    unshare
        .arg("--models")
        .arg(mounted)
        .arg("--admin-listen=127.0.0.1:0");
    Some(ServerProcess::run(unshare))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_a_full_disk_does_not_take_is_refused_whole() {
    let mounted = tempfile::tempdir().unwrap();
    let Some(server) = on_small_disk(mounted.path()) else {
        return;
    };
    // Path of the folder in the mount namespace of the server.
    let folder = Path::new("/proc")
        .join(server.id().to_string())
        .join("root");
    let folder = folder.join(mounted.path().strip_prefix("/").unwrap());
    let ballast = folder.join("ballast");
    pin_around(
        &server,
        &folder,
        || fill(&ballast),
        || fs::remove_file(&ballast).unwrap(),
    )
    .await;
    ended_well(server).await;
}

fn fill(ballast: &Path) {
    let mut file = fs::File::create(ballast).unwrap();
    for length in [1 << 16, 1 << 12, 1] {
        while match file.write_all(&vec![0; length]) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                false
            }
        } {}
    }
}
