//! What is in the model folder and will never be loaded is listed with the reason, once it is complete.

use std::{fs, os::unix::fs::symlink, time::Duration};

use hlorank_client::v1::{IgnoredPath, ModelState};
use hlorank_tests::{Artifacts, http_get};

use hlorank_tests::subject::{MODEL, Subject};

/// Returns what is listed as never loaded, once it has this many paths.
async fn until_ignored(subject: &Subject, count: usize) -> Vec<IgnoredPath> {
    const PAUSE: Duration = Duration::from_millis(50);
    loop {
        let ignored = subject
            .server
            .client()
            .await
            .list_model_folder()
            .await
            .unwrap()
            .ignored;
        if ignored.len() == count {
            return ignored;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_servers_would_load_is_listed_with_the_reason() {
    let subject = Subject::start_with(Artifacts::tiles(), &["--poll-seconds=0.2"]).await;
    assert_eq!(until_ignored(&subject, 0).await, []);
    let folder = subject.artifacts.folder();
    let (model, version) = (folder.join(MODEL), subject.first.to_string());
    let [padded, with_letter] = [format!("0000{version}"), format!("v{version}")];
    for name in [&padded, &with_letter] {
        let copy = model.join(name);
        fs::create_dir(&copy).unwrap();
        fs::copy(
            model.join(&version).join("manifest.json"),
            copy.join("manifest.json"),
        )
        .unwrap();
    }
    symlink(&version, model.join("latest")).unwrap();
    symlink("nowhere", model.join("99")).unwrap();
    fs::create_dir_all(folder.join("ranker/1")).unwrap();
    fs::write(folder.join("ranker/1/model.onnx"), "").unwrap();
    fs::write(folder.join("loose.onnx"), "").unwrap();
    for name in ["line\nbreak", "\u{1b}[2J", "\u{202e}reversed"] {
        let copy = folder.join(name).join(&version);
        fs::create_dir_all(&copy).unwrap();
        fs::copy(
            model.join(&version).join("manifest.json"),
            copy.join("manifest.json"),
        )
        .unwrap();
    }
    fs::create_dir(folder.join(".staging")).unwrap();

    let ignored = until_ignored(&subject, 9).await;
    let paths: Vec<&str> = ignored
        .iter()
        .map(|ignored| ignored.path.as_str())
        .collect();
    let own = |name: &str| format!("{MODEL}/{name}");
    let expected = [
        "\\u{1b}[2J".to_owned(),
        "\\u{202e}reversed".to_owned(),
        "line\\nbreak".to_owned(),
        "loose.onnx".to_owned(),
        "ranker/1".to_owned(),
        own(&padded),
        own("99"),
        own("latest"),
        own(&with_letter),
    ];
    assert_eq!(paths, expected);
    let reasons = |path: &str| {
        ignored
            .iter()
            .find(|ignored| ignored.path == path)
            .unwrap()
            .reason
            .clone()
    };
    assert!(reasons("ranker/1").contains("no manifest.json"));
    assert!(reasons(&own(&padded)).contains("without leading zeros"));
    let (_, metrics) = http_get(subject.server.metrics_address(), "/metrics").await;
    assert!(!metrics.contains("reversed"), "such a folder is no model");
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );

    // A manifest that arrives late makes it a version.
    fs::remove_dir_all(folder.join("ranker")).unwrap();
    until_ignored(&subject, 8).await;
}
