//! A server loads the artifacts of the last release, and checks their golden cases, as it does those of today.

use std::io::{Write as _, stderr};

use hlorank_tests::prelude::*;

/// Returns what git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(repository("."))
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_the_last_release_serve() {
    let Some(tag) = git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]) else {
        // Not `eprintln!`, whose output the test harness captures.
        let _ = writeln!(
            stderr(),
            "skipped: no tag of a release can be reached from this commit"
        );
        return;
    };
    let tag = String::from_utf8(tag).unwrap();
    let archive = git(&["archive", tag.trim(), "models/registry"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (packed, unpacked) = (
        folder.path().join("models.tar"),
        folder.path().join("models/registry"),
    );
    fs::write(&packed, archive).unwrap();
    let status = Command::new("tar")
        .arg("-xf")
        .arg(&packed)
        .arg("-C")
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    let models = format!("--models={}", unpacked.display());
    let server = TestServer::start_with(&[&models, "--default-models=none"]).await;
    let mut checked = 0;
    for model in fs::read_dir(&unpacked)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
    {
        for version in fs::read_dir(model.path()).unwrap().map(Result::unwrap) {
            let (name, version) = (model.file_name(), version.file_name());
            let version = version.to_str().unwrap().parse().unwrap();
            server
                .until(name.to_str().unwrap(), version, ModelState::Serving)
                .await;
            checked += 1;
        }
    }
    assert!(checked > 0, "{} has artifacts", tag.trim());
}
